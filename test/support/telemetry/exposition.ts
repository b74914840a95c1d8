/** One line of an exposition: a name, its labels and a number. */
type Series = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};

/** One metric of an exposition. */
export type Family = { readonly type: string; readonly help: string; readonly series: readonly Series[] };

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const HELP = new RegExp(`^# HELP (${NAME}) (.+)$`);
const TYPE = new RegExp(`^# TYPE (${NAME}) (counter|gauge|histogram|summary)$`);
const LINE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\S+)$`);
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/y;
const NUMBER = /^[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf|nan)$/i;

/** Parses the text format of Prometheus; throws on anything that it forbids or advises against. */
export function parseExposition(text: string): ReadonlyMap<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const families = new Map<string, { type: string; help: string; series: Series[] }>();
  const seen = new Set<string>();
  for (const line of text.split('\n').filter(part => part !== '')) {
    const help = HELP.exec(line);
    const type = TYPE.exec(line);
    if (help) {
      if (families.has(help[1] ?? '')) throw new Error(`declared twice: ${line}`);
      families.set(help[1] ?? '', { type: '', help: help[2] ?? '', series: [] });
    } else if (type) {
      const family = families.get(type[1] ?? '');
      if (!family || family.type !== '') throw new Error(`a type without a help before it: ${line}`);
      family.type = type[2] ?? '';
    } else {
      const series = parseLine(line);
      const base = series.name.replace(/_(bucket|sum|count)$/, '');
      const family = families.get(series.name) ?? families.get(base);
      if (!family) throw new Error(`of no metric: ${line}`);
      const key = line.slice(0, line.lastIndexOf(' '));
      if (seen.has(key)) throw new Error(`there twice: ${key}`);
      seen.add(key);
      family.series.push(series);
    }
  }
  return families;
}

function parseLine(line: string): Series {
  const [, name = '', labels = '', value = ''] = LINE.exec(line) ?? [];
  if (name === '' || !NUMBER.test(value)) throw new Error(`not a line of an exposition: ${line}`);
  const number = /nan/i.test(value) ? NaN : Number(value.replace(/inf/i, 'Infinity'));
  return { name, labels: parseLabels(labels, line), value: number };
}

function parseLabels(text: string, line: string): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {};
  for (let at = 0; at < text.length; at = LABEL.lastIndex) {
    LABEL.lastIndex = at;
    const [, name = '', value = ''] = LABEL.exec(text) ?? [];
    if (name === '' || Object.hasOwn(labels, name)) throw new Error(`bad labels: ${line}`);
    labels[name] = value.replace(/\\([\\"n])/g, (_all, escaped: string) =>
      escaped === 'n' ? '\n' : escaped,
    );
  }
  return labels;
}

/** The value of a series with exactly these labels; undefined if there is none. */
export function valueOf(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const found = [...families.values()]
    .flatMap(family => family.series)
    .filter(series => series.name === name);
  const wanted = JSON.stringify(Object.entries(labels).sort());
  return found.find(series => JSON.stringify(Object.entries(series.labels).sort()) === wanted)?.value;
}
