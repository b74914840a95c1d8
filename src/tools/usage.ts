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
  const isUnknown = 'code' in error && error.code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION';
  const [, flag] = isUnknown ? (/^Unknown option '([^']+)'/.exec(error.message) ?? []) : [];
  return plainText(
    flag === undefined
      ? error.message
      : `${name}: ${flag}: there is no such flag; ${hintFor(flag, flagsIn(help))}`,
  );
}

/** Of a letter, as kubectl has them, the only flag that begins with it. */
function hintFor(flag: string, flags: readonly string[]): string {
  const beginning = /^-\w$/.test(flag) ? flags.filter(each => each.startsWith(`-${flag}`)) : [];
  const meant = beginning.length === 1 ? beginning[0] : nearest(flag, flags);
  return meant === undefined ? 'see --help' : `did you mean ${meant}?`;
}
