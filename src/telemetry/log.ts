import { destination, pino, stdTimeFunctions } from 'pino';
import { loggableFields, loggableText } from './loggable.ts';
import type { PlainFields } from './loggable.ts';
import { SettingError } from './setting-error.ts';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/** How much a line matters. */
export type LogLevel = (typeof LEVELS)[number];

/** What a line is about, by name: anything, since it is made fit for a log before it is written. */
type LogFields = Readonly<Record<string, unknown>>;

/**
 * Where the rest of the product tells what happens: a constant message, and fields that say of what. Nothing that is
 * given makes it throw, and nothing that looks or is named like a secret is written.
 */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A log that adds fields to each of its lines. */
  child(fields: LogFields): Log;
}

/** Takes finished lines, each with its end. */
export interface LogDestination {
  write(line: string): void;
}

/** The level that the setting LOG_LEVEL names; fails with SettingError where it names none. */
export function parseLogLevel(text: string): LogLevel {
  const level = LEVELS.find(name => name === text.trim().toLowerCase());
  if (level) return level;
  throw new SettingError(
    'LOG_LEVEL',
    `${JSON.stringify(text)} is not a level; write one of ${LEVELS.join(', ')}`,
  );
}

/** A log that writes one JSON object a line, by default to standard output. */
export function createLog(options: { readonly level: LogLevel; readonly to?: LogDestination }): Log {
  const { level, to = standardOutput() } = options;
  const write = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: {
        level: label => ({ level: label }),
        log: line => fieldsOf(line as Line),
      },
    },
    to,
  );
  const writeLine: WriteLine = (at, message, line) => {
    if (write.isLevelEnabled(at)) write[at](line, loggableText(message));
  };
  return logOf(writeLine, {});
}

/** Fields inside of an object of ours, because pino takes some objects that it is given for requests and errors. */
type Line = { readonly fields: LogFields | undefined; readonly added: PlainFields };

type WriteLine = (level: LogLevel, message: string, line: Line) => void;

function logOf(write: WriteLine, added: PlainFields): Log {
  const at = (level: LogLevel) => (message: string, fields?: LogFields) =>
    write(level, message, { fields, added });
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: fields => logOf(write, { ...added, ...loggableFields(fields) }),
  };
}

/** What each line has anyway keeps its name. */
const OWN_NAMES = ['level', 'time', 'msg'];

function fieldsOf({ fields, added }: Line): Record<string, unknown> {
  const all = fields === undefined ? added : { ...added, ...loggableFields(fields) };
  const line = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of Object.entries(all)) line[OWN_NAMES.includes(name) ? `${name}_` : name] = value;
  return line;
}

/** Lines are written at once, so that none is lost when the process dies; a reader that is gone does not end it. */
function standardOutput(): LogDestination {
  const output = destination({ fd: 1, sync: true });
  output.on('error', () => undefined);
  return output;
}
