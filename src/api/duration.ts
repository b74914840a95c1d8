const UNITS_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

const PART = /([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|ms|s|m|h)/y;

/** Milliseconds of a duration such as 500ms, 1.5s or 1m30s, or nothing where it is none. */
export function durationMs(text: string): number | undefined {
  const isNegative = text.startsWith('-');
  const start = isNegative || text.startsWith('+') ? 1 : 0;
  if (text.length - start === 1 && text.endsWith('0')) return 0;
  const ms = sumOfParts(text, start);
  return isNegative && ms !== undefined ? -ms : ms;
}

function sumOfParts(text: string, start: number): number | undefined {
  if (start === text.length) return undefined;
  let sum = 0;
  for (let at = start; at < text.length; at = PART.lastIndex) {
    PART.lastIndex = at;
    const part = PART.exec(text);
    if (!part) return undefined;
    sum += Number(part[1]) * (UNITS_MS[part[2] ?? ''] ?? NaN);
  }
  return sum;
}
