import { destination, pino, stdTimeFunctions } from 'pino';
import { loggableFields, loggableText } from './loggable.ts';
import type { PlainFields } from './loggable.ts';
import { SettingError } from './setting-error.ts';

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/** The level of a log line. */
export type LogLevel = (typeof LEVELS)[number];

/** The fields of a log line; any values, which are sanitized before they are written. */
type LogFields = Readonly<Record<string, unknown>>;

/**
 * The structured log: a constant message with fields. It never throws, and values that look or are named like secrets are
 * redacted.
 */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A log that adds fields to each line. */
  child(fields: LogFields): Log;
}

/** Where lines are written, each with its line end. */
export interface LogDestination {
  write(line: string): void;
}

/** Parses LOG_LEVEL; throws SettingError. */
export function parseLogLevel(text: string): LogLevel {
  const level = LEVELS.find(name => name === text.trim().toLowerCase());
  if (level) return level;
  throw new SettingError(
    'LOG_LEVEL',
    `${JSON.stringify(text)} is not a level; write one of ${LEVELS.join(', ')}`,
  );
}

/** A log that writes one JSON object per line, by default to standard output. */
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

/** Fields in a wrapper object, because pino treats some objects as requests and errors. */
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

/** Fields of every line; given fields of the same names get a suffix. */
const OWN_NAMES = ['level', 'time', 'msg'];

function fieldsOf({ fields, added }: Line): Record<string, unknown> {
  const all = fields === undefined ? added : { ...added, ...loggableFields(fields) };
  const line = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of Object.entries(all)) line[OWN_NAMES.includes(name) ? `${name}_` : name] = value;
  return line;
}

/** Writes lines synchronously, so that none is lost when the process dies; a closed reader does not end the process. */
function standardOutput(): LogDestination {
  const output = destination({ fd: 1, sync: true });
  output.on('error', () => undefined);
  return output;
}
