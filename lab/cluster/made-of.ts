import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BINARY_NAMES } from '../parts/parts.ts';
import type { BinaryName } from '../parts/parts.ts';

const KEY_LENGTH = 16;

/** A text that changes with the programs of a cluster, whose paths carry their versions, and with how it is set up. */
export function madeOf(pathOf: (name: BinaryName) => string): string {
  const hash = createHash('sha256').update(JSON.stringify(BINARY_NAMES.map(pathOf)));
  const entries = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' });
  const files = entries.filter(name => name.endsWith('.ts')).sort();
  for (const file of files) hash.update(`\n${file}\n`).update(readFileSync(join(import.meta.dirname, file)));
  return hash.digest('hex').slice(0, KEY_LENGTH);
}
