import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const LENGTH = 16;

/** A hash of the paths of programs, which contain their versions, and of the files below some folders that a pattern matches. */
export function fingerprint(
  programs: readonly string[],
  folders: readonly string[],
  pattern = /\.ts$/,
): string {
  const hash = createHash('sha256').update(JSON.stringify(programs));
  for (const folder of folders) {
    const entries = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    for (const file of entries.filter(name => pattern.test(name)).sort())
      hash.update(`\n${file}\n`).update(readFileSync(join(folder, file)));
  }
  return hash.digest('hex').slice(0, LENGTH);
}
