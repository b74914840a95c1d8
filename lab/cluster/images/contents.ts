import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, realpathSync, statSync } from 'node:fs';
import { promisify } from 'node:util';
import type { BinaryName } from '../../parts/parts.ts';
import type { Image } from './table.ts';

const run = promisify(execFile);

/** The folder of programs in an image. */
export const PROGRAMS = '/usr/local/bin';

const CA_CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/** The files of an image: path in the image to path on this machine. */
export type Contents = ReadonlyMap<string, string>;

/** The contents of an image: programs, their libraries, and CA certificates. */
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

/** The shared libraries of a program; none for a static one. */
async function librariesOf(program: string): Promise<readonly string[]> {
  const listed = await run('ldd', [program]).catch(() => ({ stdout: '' }));
  return [...listed.stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path);
}

/** To be raised when images are made in another way. */
const RECIPE = '3';

/** A hash of the contents of an image. */
export function keyOfContents(contents: Contents): string {
  const hash = createHash('sha256').update(RECIPE);
  for (const [inside, source] of contents) {
    const { size, mtimeMs } = statSync(source);
    hash.update(`\n${inside} ${source} ${size} ${mtimeMs}`);
  }
  return hash.digest('hex').slice(0, 16);
}
