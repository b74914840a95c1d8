import { parseArgs } from 'node:util';
import { nearest } from '../api/validation/nearest.ts';
import { wrapped } from '../api/wrapped.ts';
import { SettingError } from '../telemetry/setting-error.ts';
import { durationMs } from '../api/duration.ts';

/** A setting of a process: an environment variable, or the flag of the same name in kebab case. */
type Setting<T> = {
  /** The name of the environment variable. */
  readonly name: string;
  readonly help: string;
  /** As a user would write it. */
  readonly default?: string;
  /** Throws SettingError, which names the variable or the flag, whichever was set. */
  readonly parse: (setting: string, text: string) => T;
};

/** Settings by their names in code. */
export type Settings = Readonly<Record<string, Setting<unknown>>>;

/** The parsed values of settings. */
export type Values<S extends Settings> = { readonly [K in keyof S]: ReturnType<S[K]['parse']> };

/** Where settings are read from. */
export type Given = {
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
};

/** The flag of a setting, without its dashes. */
function flagOf({ name }: Pick<Setting<unknown>, 'name'>): string {
  return name.toLowerCase().replaceAll('_', '-');
}

/** Reads all settings: a flag overrides a variable, and a variable overrides the default. Throws SettingError. */
export function readSettings<S extends Settings>(settings: S, { args, environment }: Given): Values<S> {
  const flags = readFlags(Object.values(settings).map(flagOf), args);
  const values = Object.entries<Setting<unknown>>(settings).map(([key, setting]) => {
    const flag = flags.get(flagOf(setting));
    if (flag !== undefined) return [key, setting.parse(`--${flagOf(setting)}`, flag)];
    const variable = environment[setting.name];
    const isGiven = variable !== undefined && variable.trim() !== '';
    return [key, setting.parse(setting.name, isGiven ? variable : (setting.default ?? ''))];
  });
  return Object.fromEntries(values) as Values<S>;
}

function readFlags(known: readonly string[], args: readonly string[]): ReadonlyMap<string, string> {
  const options = Object.fromEntries(known.map(flag => [flag, { type: 'string' } as const]));
  // Not strict: its own errors do not suggest the flag that was meant.
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  const flags = new Map<string, string>();
  for (const token of tokens) {
    if (token.kind !== 'option') {
      const text = (args[token.index] ?? '').slice(0, 60);
      throw new SettingError(text, 'is not a flag: every setting is one, such as --log-level debug');
    }
    if (!known.includes(token.name)) {
      const meant = nearest(token.name, known);
      const hint = meant === undefined ? 'see --help' : `did you mean --${meant}?`;
      throw new SettingError(token.rawName.slice(0, 60), `there is no such flag; ${hint}`);
    }
    if (token.value === undefined) throw new SettingError(token.rawName, 'needs a value after it');
    flags.set(token.name, token.value);
  }
  return flags;
}

/** The help text: flag, variable, description and default of each setting. */
export function helpOn(settings: Settings): string {
  const lines = Object.values(settings).map(setting => {
    const preset =
      setting.default === undefined || setting.default === '' ? '' : ` (default ${setting.default})`;
    const help = wrapped(`      ${setting.help}${preset}`, 6, 80).join('\n');
    return `  ${`--${flagOf(setting)}`.padEnd(40)}${setting.name}\n${help}\n`;
  });
  return lines.join('');
}

/** A text that is required. */
export function parseRequired(hint: string): (setting: string, text: string) => string {
  return (setting, text) => {
    if (text.trim() !== '') return text.trim();
    throw new SettingError(setting, `is not set: ${hint}`);
  };
}

/** A text that is optional. */
export function parseOptional(_setting: string, text: string): string | undefined {
  return text.trim() === '' ? undefined : text.trim();
}

/** One of several words, upper or lower case. */
export function parseChoice<const T extends string>(
  choices: readonly T[],
): (setting: string, text: string) => T {
  return (setting, text) => {
    const choice = choices.find(one => one.toLowerCase() === text.trim().toLowerCase());
    if (choice !== undefined) return choice;
    throw new SettingError(
      setting,
      `${JSON.stringify(text.slice(0, 60))} is not one of ${choices.join(', ')}`,
    );
  };
}

/** A host:port to connect to. */
export function parseTarget(setting: string, text: string): string | undefined {
  if (text.trim() === '') return undefined;
  const [, digits = ''] = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\]):(\d{1,5})$/i.exec(text.trim()) ?? [];
  const port = Number(digits);
  if (digits !== '' && port >= 1 && port <= 65_535) return text.trim();
  const form = 'write a host and a port, such as 127.0.0.1:5005';
  throw new SettingError(
    setting,
    `${JSON.stringify(text.slice(0, 60))} is not an address to connect to; ${form}`,
  );
}

/** A count of at least 1; throws SettingError. */
export function parseCount(setting: string, text: string): number {
  const count = /^[0-9]{1,9}$/.test(text.trim()) ? Number(text) : 0;
  if (count > 0) return count;
  throw new SettingError(setting, `${shown(text)} is not a whole number from 1 on, such as 10`);
}

/** A port to listen on, or 0 for any free one; throws SettingError. */
export function parsePort(setting: string, text: string): number {
  const port = /^[0-9]{1,5}$/.test(text.trim()) ? Number(text) : NaN;
  if (port <= 65_535) return port;
  throw new SettingError(setting, `${shown(text)} is not a port, such as 9003`);
}

/** The milliseconds of a duration longer than 0; throws SettingError. */
export function parseDuration(setting: string, text: string): number {
  const ms = durationMs(text.trim());
  if (ms !== undefined && ms > 0) return ms;
  throw new SettingError(setting, `${shown(text)} is not a duration longer than 0, such as 30s or 1m30s`);
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  K: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
};

/** The bytes of a size; throws SettingError. */
export function parseSize(setting: string, text: string): number {
  const [, number = '', unit = ''] = /^([0-9]{1,15})([KMG]i?)?$/.exec(text.trim()) ?? [];
  const bytes = Number(number) * (UNITS[unit] ?? 0);
  if (bytes > 0 && Number.isSafeInteger(bytes)) return bytes;
  throw new SettingError(setting, `${shown(text)} is not a size, such as 100M, 100Mi or a number of bytes`);
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 60));
}
