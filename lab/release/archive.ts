import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createGzip } from 'node:zlib';

const run = promisify(execFile);

/** What the bytes of an archive depend on beside the files. */
export type ArchiveOptions = {
  /** The time of all files, in seconds. */
  readonly seconds: number;
  /** The folder that the files are in, in the archive. */
  readonly prefix?: string;
};

/** Writes a tar file of the files below a folder; the same files make the same bytes. */
export async function tarFolder(folder: string, file: string, options: ArchiveOptions): Promise<void> {
  const { seconds, prefix } = options;
  const time = [`--mtime=@${seconds}`, '--sort=name', '--format=gnu'];
  const owner = ['--owner=0', '--group=0', '--numeric-owner', '--mode=a+rX,u+w'];
  const place = prefix === undefined ? [] : [`--transform=s,^\\.,${prefix},`];
  await run('tar', ['-C', folder, ...time, ...owner, ...place, '-cf', file, '.'], { env: { LC_ALL: 'C' } });
}

/** Writes a compressed tar file; without a name and a time in its header, which would differ. */
export async function packFolder(folder: string, file: string, options: ArchiveOptions): Promise<void> {
  const plain = `${file}.plain`;
  await tarFolder(folder, plain, options);
  await compress(plain, file);
  await rm(plain);
}

/** Compresses a file into another one. */
export async function compress(from: string, to: string): Promise<void> {
  await pipeline(createReadStream(from), createGzip(), createWriteStream(to));
}

/** The SHA-256 of a file in hexadecimal. */
export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}
