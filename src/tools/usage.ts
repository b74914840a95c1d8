import { nearest } from '../api/validation/nearest.ts';
import { flagsIn } from './completion.ts';
import { plainText } from './plain-text.ts';

/** The message where there is no command of a name. */
export function unknownCommand(name: string, commands: readonly string[]): string {
  const meant = nearest(name, commands);
  const hint = meant === undefined ? 'mesh-gateway help lists them' : `did you mean ${meant}?`;
  return `there is no command ${JSON.stringify(name)}; ${hint}`;
}

/** The message of an error that a command has thrown, for a terminal; of a flag that it does not have, with the one that is meant. */
export function errorText(
  error: unknown,
  { name, help }: { readonly name: string; readonly help: string },
): string {
  if (!(error instanceof Error)) return plainText(String(error));
  const misuse = misuseOf(error, help);
  return plainText(misuse === undefined ? error.message : `${name}: ${misuse}`);
}

/** What parseArgs refuses; undefined for other errors. */
function misuseOf(error: Error, help: string): string | undefined {
  const { message } = error;
  const [, quoted = ''] = /'(-[^' ]+|[^']*)/.exec(message) ?? [];
  switch ('code' in error ? error.code : undefined) {
    case 'ERR_PARSE_ARGS_UNKNOWN_OPTION':
      return `${quoted}: there is no such flag; ${hintFor(quoted, help)}`;
    case 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE':
      return message.includes('does not take an argument')
        ? `${quoted}: takes no value`
        : `${quoted}: needs a value after it`;
    case 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL':
      return `${JSON.stringify(quoted)}: there are only flags; see --help`;
  }
  return undefined;
}

/** Of a letter, as kubectl has them, the only flag that begins with it. */
function hintFor(flag: string, help: string): string {
  const flags = flagsIn(help);
  if (['-f', '--file', '--filename'].includes(flag) && /\[PATH\.\.\.\]/.test(help))
    return 'name files and folders without a flag';
  if (flag === '-f' && flags.includes('--file')) return 'did you mean --file?';
  const beginning = /^-\w$/.test(flag) ? flags.filter(each => each.startsWith(`-${flag}`)) : [];
  const meant = beginning.length === 1 ? beginning[0] : nearest(flag, flags);
  return meant === undefined ? 'see --help' : `did you mean ${meant}?`;
}
