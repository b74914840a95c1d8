import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Part } from './parts.ts';
import { buildCommand } from './command.ts';

const KEY_LENGTH = 16;

/** A hash of what a built part depends on: the files of its folder except tests, the commands and the toolchain. */
export function keyOf(part: Part, folder: string, toolchain: string): string {
  const commands = part.binaries.map(binary =>
    buildCommand(part, binary, { folder: '', version: '' }, binary.name),
  );
  const hash = createHash('sha256').update(JSON.stringify([toolchain, commands]));
  for (const path of filesBelow(folder)) {
    const content = readFileSync(join(folder, path));
    hash.update(`\n${path} ${content.length}\n`).update(content);
  }
  return hash.digest('hex').slice(0, KEY_LENGTH);
}

function filesBelow(folder: string): readonly string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter(entry => entry.isFile() && !entry.name.endsWith('_test.go'))
    .map(entry => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

/** The file that names the version of a part, and the separator between name and version. */
const VERSION_IN = {
  go: ['go.mod', ' v'],
  python: ['requirements.txt', '=='],
  npm: ['package.json', '": "'],
} as const;

/** The version of a part, without Go's suffix; empty for our own programs. */
export function versionOf({ from, source }: Part, folder: string): string {
  if (source === undefined) return '';
  const [file, separator] = VERSION_IN[from];
  const lines = readFileSync(join(folder, file), 'utf8').split('\n');
  const line = lines
    .map(text => text.replace(/^(require)?\s+"?/, ''))
    .find(text => text.startsWith(source + separator));
  if (line === undefined) throw new Error(`${file} of ${folder} does not name ${source}`);
  return line.slice(source.length + separator.length).split(/[ +"]/)[0] ?? '';
}
