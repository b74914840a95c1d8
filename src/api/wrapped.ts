import { stripVTControlCharacters } from 'node:util';

/** A line as lines of a width; those after the first are indented. A longer word stays whole. */
export function wrapped(line: string, indent: number, columns: number): readonly string[] {
  const lines: string[] = [];
  let current = '';
  for (const [index, word] of line.split(' ').entries()) {
    const longer = index === 0 ? word : `${current} ${word}`;
    if (stripVTControlCharacters(longer).length <= columns || current.trim() === '') current = longer;
    else {
      lines.push(current);
      current = `${' '.repeat(indent)}${word}`;
    }
  }
  return [...lines, current];
}
