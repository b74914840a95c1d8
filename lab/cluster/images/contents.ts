import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, realpathSync, statSync } from 'node:fs';
import { promisify } from 'node:util';
import type { BinaryName } from '../../parts/parts.ts';
import type { Image } from './table.ts';

const run = promisify(execFile);

/** Where programs are in an image. */
export const PROGRAMS = '/usr/local/bin';

const CA_CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/** Each file of an image, by its path there, and where it comes from. */
export type Contents = ReadonlyMap<string, string>;

/** What is in an image: its programs, the libraries they need, and whom they may trust. */
export async function contentsOf(
  { programs }: { readonly programs: Image['programs'] },
  pathOf: (name: BinaryName) => string,
): Promise<Contents> {
  const contents = new Map<string, string>();
  for (const program of programs) {
    const source = pathOf(program);
    contents.set(`${PROGRAMS}/${program}`, source);
    for (const library of await librariesOf(source)) contents.set(library, realpathSync(library));
  }
  if (existsSync(CA_CERTIFICATES)) contents.set(CA_CERTIFICATES, realpathSync(CA_CERTIFICATES));
  return contents;
}

/** The libraries that the loader finds for a program; a static one has none. */
async function librariesOf(program: string): Promise<readonly string[]> {
  const listed = await run('ldd', [program]).catch(() => ({ stdout: '' }));
  return [...listed.stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path);
}

/** Raise it when images are made in another way. */
const RECIPE = '3';

/** A text that changes with what is in an image. */
export function keyOfContents(contents: Contents): string {
  const hash = createHash('sha256').update(RECIPE);
  for (const [inside, source] of contents) {
    const { size, mtimeMs } = statSync(source);
    hash.update(`\n${inside} ${source} ${size} ${mtimeMs}`);
  }
  return hash.digest('hex').slice(0, 16);
}
