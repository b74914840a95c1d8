import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileOfPart, partsIn } from '../../../src/files/gateway/folder.ts';

/**
 * The parts of the generated folder, by kind, namespace and name, without hidden files. Throws if a part is in the
 * wrong file.
 */
export function generatedIn(folder: string): ReadonlyMap<string, string> {
  const files = readdirSync(folder).filter(name => !name.startsWith('.'));
  const all = files.map(file => ({ file, parts: partsIn(readFileSync(join(folder, file), 'utf8')) }));
  for (const { file, parts } of all)
    for (const part of parts.keys()) if (fileOfPart(part) !== file) throw new Error(`${part} is in ${file}`);
  return new Map(all.flatMap(({ parts }) => [...parts]));
}
