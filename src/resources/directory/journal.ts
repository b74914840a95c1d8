import { constants } from 'node:fs';
import { copyFile, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Key } from '../../api/key.ts';
import { judge } from './judge.ts';
import { HEADER, laterVersionOf, lineOf, parseLines } from './journal-lines.ts';
import { noneIfMissing } from './disk.ts';
import type { Kept } from '../lifecycle.ts';
import { ResourceError } from '../resources.ts';

/** What was found in a state folder. */
export type Found = {
  readonly kept: ReadonlyMap<Key, Kept>;
  /** The name under which a journal of which not all counts has been set aside, and why. */
  readonly setAside?: { readonly file: string; readonly why: readonly string[] };
};

type All = Iterable<readonly [Key, Kept]>;

const FILE = 'resources.journal';

/** A journal with so many more bytes that no longer count than bytes that do is written anew. */
const MOST_DEAD_BYTES = 1024 * 1024;

/**
 * What is kept of all objects, in one file to which every change adds lines. A line carries a hash of itself, so that
 * one which a crash cut short is known; what `write` has returned from survives any crash. The file is written anew,
 * beside the old one and then put in its place, when most of it no longer counts or something is wrong with it.
 */
export class Journal {
  readonly #folder: string;
  readonly #path: string;
  readonly #lengths = new Map<Key, number>();
  #file: FileHandle | undefined;
  #bytes = 0;
  #liveBytes = 0;

  constructor(folder: string) {
    this.#folder = folder;
    this.#path = join(folder, FILE);
  }

  /** Reads what there is; what is damaged or not ours is set aside. */
  async load(): Promise<Found> {
    const info = await stat(this.#path).catch(noneIfMissing);
    if (!info) return { kept: new Map() };
    if (!info.isFile())
      return { kept: new Map(), setAside: { file: await this.#moveAside(), why: [NOT_OURS] } };
    const file = await open(this.#path, constants.O_RDWR);
    try {
      return await this.#loadFrom(file);
    } catch (error) {
      await file.close().catch(() => undefined);
      throw error;
    }
  }

  async #loadFrom(file: FileHandle): Promise<Found> {
    const bytes = await file.readFile();
    const later = laterVersionOf(bytes);
    if (later !== undefined) throw tooNew(this.#path, later);
    const { entries, wholeBytes, isDamaged } = parseLines(bytes);
    const last = new Map<Key, Kept>();
    for (const entry of entries) {
      if (entry.kept) last.set(entry.key, entry.kept);
      else last.delete(entry.key);
      this.#count(entry.key, entry.kept ? entry.bytes : undefined);
    }
    const judged = judge(last);
    const { kept } = judged;
    const why = [...(isDamaged ? [NOT_OURS] : []), ...judged.why];
    if (why.length > 0) {
      await file.close();
      const setAside = { file: await this.#copyAside(), why };
      await this.#writeAnew(kept);
      return { kept, setAside };
    }
    if (wholeBytes < bytes.length) await file.truncate(wholeBytes);
    [this.#file, this.#bytes] = [file, wholeBytes];
    return { kept };
  }

  /** Makes changes durable; `all` gives everything that is to be kept after them. */
  async write(changes: ReadonlyMap<Key, Kept | undefined>, all: () => All): Promise<void> {
    const file = this.#file;
    const isMostlyDead = this.#bytes - this.#liveBytes > this.#liveBytes + MOST_DEAD_BYTES;
    if (file && !isMostlyDead && (await this.#isInPlace(file))) await this.#add(file, changes);
    else await this.#writeAnew(all());
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async #add(file: FileHandle, changes: ReadonlyMap<Key, Kept | undefined>): Promise<void> {
    const lines = Array.from(changes, ([key, kept]) => {
      const line = Buffer.from(lineOf(kept ? { key, kept } : { key }));
      return { key, line, bytes: kept ? line.length : undefined };
    });
    const bytes = Buffer.concat(lines.map(({ line }) => line));
    try {
      await writeAt(file, bytes, this.#bytes);
      await file.datasync();
    } catch (error) {
      // What the file ends with is unknown now: the next write makes a new one.
      await file.truncate(this.#bytes).catch(() => undefined);
      await this.close().catch(() => undefined);
      throw error;
    }
    this.#bytes += bytes.length;
    for (const line of lines) this.#count(line.key, line.bytes);
  }

  /** Whether the file is still the one that a restart would read, and only we wrote to it. */
  async #isInPlace(file: FileHandle): Promise<boolean> {
    const [ours, there] = await Promise.all([file.stat(), stat(this.#path).catch(noneIfMissing)]);
    return there?.ino === ours.ino && there.dev === ours.dev && ours.size === this.#bytes;
  }

  async #writeAnew(all: All): Promise<void> {
    const temporary = `${this.#path}.new`;
    await this.close();
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const file = await open(temporary, 'w', 0o600);
    try {
      this.#lengths.clear();
      [this.#liveBytes, this.#bytes] = [0, 0];
      for (const chunk of this.#chunksOf(all)) {
        await writeAt(file, chunk, this.#bytes);
        this.#bytes += chunk.length;
      }
      await file.sync();
      await rename(temporary, this.#path);
      await syncFolder(this.#folder);
    } catch (error) {
      await file.close();
      await rm(temporary, { force: true }).catch(() => undefined);
      throw error;
    }
    this.#file = file;
  }

  *#chunksOf(all: All): Generator<Buffer> {
    let lines = [Buffer.from(HEADER)];
    let bytes = 0;
    for (const [key, kept] of all) {
      const line = Buffer.from(lineOf({ key, kept }));
      this.#count(key, line.length);
      lines.push(line);
      bytes += line.length;
      if (bytes < MOST_WRITTEN_AT_ONCE) continue;
      yield Buffer.concat(lines);
      [lines, bytes] = [[], 0];
    }
    yield Buffer.concat(lines);
  }

  #count(key: Key, bytes: number | undefined): void {
    this.#liveBytes += (bytes ?? 0) - (this.#lengths.get(key) ?? 0);
    if (bytes === undefined) this.#lengths.delete(key);
    else this.#lengths.set(key, bytes);
  }

  /** Under the first free name, or in the place of the newest copy. */
  async #copyAside(): Promise<string> {
    let name = '';
    for (let at = 1; at <= MOST_COPIES; at++) {
      name = `${FILE}.damaged-${at}`;
      if (!(await stat(join(this.#folder, name)).catch(noneIfMissing))) break;
    }
    await copyFile(this.#path, join(this.#folder, name));
    return name;
  }

  async #moveAside(): Promise<string> {
    const name = `${FILE}.foreign-${Date.now()}`;
    await rename(this.#path, join(this.#folder, name));
    return name;
  }
}

function tooNew(path: string, version: number): ResourceError {
  const message = `${path} was written by a later mesh-gateway, in version ${version} of its form: start that one again, or move the file away to begin without what it keeps`;
  return new ResourceError('Unavailable', message);
}

const MOST_WRITTEN_AT_ONCE = 1024 * 1024;

const MOST_COPIES = 5;

const NOT_OURS = 'the journal of the state folder held what we did not write; what was whole still counts';

async function writeAt(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

/** Some file systems cannot, and need not. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  await handle.sync().catch(() => undefined);
  await handle.close();
}
