import { styleText } from 'node:util';
import type { Severity } from '../api/reasons.ts';
import { wrapped } from '../api/wrapped.ts';

/** How text is shown: on a terminal wrapped at its width, elsewhere line by line as it is. */
export type Look = {
  /** The width of the terminal; absent elsewhere. */
  readonly columns?: number;
  readonly hasColor: boolean;
};

/** For a pipe or a file. */
export const PLAIN: Look = { hasColor: false };

/** The values of --color. */
export const COLOR_HELP = `  --color       auto, which is the default: on a terminal, unless $NO_COLOR is
                set; always or never`;

/** A terminal, or what a process writes to in place of one. */
type Stream = { readonly isTTY?: boolean; readonly columns?: number };

/** Narrower ones wrap lines themselves. */
const LEAST_COLUMNS = 40;

/** How a command shows its text, by its flag --color and NO_COLOR. */
export function lookOf(
  command: string,
  color: string,
  environment: Readonly<Record<string, string | undefined>>,
  { isTTY = false, columns = 0 }: Stream = process.stdout,
): Look {
  if (color !== 'auto' && color !== 'always' && color !== 'never')
    throw new Error(`${command}: --color ${JSON.stringify(color)} is none of auto, always, never`);
  const hasColor = color === 'always' || (color === 'auto' && isTTY && !environment['NO_COLOR']);
  return { hasColor, ...(isTTY && columns >= LEAST_COLUMNS && { columns }) };
}

const STYLES = {
  error: ['bold', 'red'],
  warning: ['bold', 'yellow'],
  note: ['bold', 'cyan'],
  unknown: ['bold', 'cyan'],
  ok: ['green'],
  fix: ['bold'],
} as const;

/** A text in the colour of a severity, of what is right, or of a fix. */
export function painted(text: string, as: Severity | 'ok' | 'fix', { hasColor }: Look): string {
  // The look has decided already.
  return hasColor ? styleText([...STYLES[as]], text, { validateStream: false }) : text;
}

/** A line as lines that fit a terminal; those after the first are indented. */
export function fitting(line: string, indent: number, { columns }: Look): readonly string[] {
  return columns === undefined ? [line] : wrapped(line, indent, columns);
}
