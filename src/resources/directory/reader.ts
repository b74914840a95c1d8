import { lstat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Key } from '../../api/key.ts';
import type { Definitions } from './definitions.ts';
import { readSource } from './file.ts';
import type { FileRead } from './file.ts';
import type { ProblemList } from './problems.ts';
import { isReadByName, scan, stampOf } from './scan.ts';
import type { Enter, Scan, Stamp } from './scan.ts';
import { interpret } from './text.ts';
import type { WrittenObjects } from './written.ts';
import { isMissing, reasonOf } from './disk.ts';

/** What the reader of a folder needs of the rest. */
export type ReaderPorts = {
  readonly folder: string;
  readonly defaultNamespace: string;
  readonly definitions: Definitions;
  /** Where objects of others go as they are written, where anybody wants them. */
  readonly written?: WrittenObjects;
  readonly problems: ProblemList;
  readonly enter: Enter;
  readonly reportFailure: (failure: unknown) => void;
};

/** What came of a look: the objects that it was about, and whether it saw all that there was to see. */
export type Look = { readonly keys: readonly Key[]; readonly isComplete: boolean };

/** What is known of a file since it was read. */
type Known = {
  readonly stamp: Stamp;
  readonly hash: string;
  readonly readMs: number;
  /** Whether it was the same after a time for which no file system's clock is too coarse. */
  readonly isCertain: boolean;
};

/** A file that changes twice in this time may look as if it did once. */
const COARSEST_CLOCK_MS = 2000;

/** So many files are read at once. */
const AT_ONCE = 16;

/** Reads the files of a folder, all or some, and takes what they say into the definitions. */
export class FolderReader {
  readonly #ports: ReaderPorts;
  readonly #known = new Map<string, Known>();

  constructor(ports: ReaderPorts) {
    this.#ports = ports;
  }

  /** Looks at everything, and reads the files that changed. */
  async lookAtAll(): Promise<Look> {
    const found = await this.#scan();
    if (!found) return { keys: [], isComplete: false };
    const unknown = new Set(found.unknown);
    const isUnknown = (file: string) => pathsAround(file).some(path => unknown.has(path));
    const before = new Set([...this.#known.keys(), ...this.#ports.definitions.files()]);
    const gone = [...before].filter(file => !found.files.has(file) && !isUnknown(file));
    const changed = [...found.files].filter(([file, stamp]) => this.#mayDiffer(file, stamp));
    return {
      keys: await this.#take(
        gone,
        changed.map(([file]) => file),
      ),
      isComplete: true,
    };
  }

  /** Looks at what has these paths; it is not complete where something else than a file came or went. */
  async lookAt(paths: Iterable<string>): Promise<Look> {
    const gone: string[] = [];
    const changed: string[] = [];
    let isComplete = true;
    for (const path of paths) {
      const found = await lstat(join(this.#ports.folder, path)).catch(noneOrUnknown);
      if (found === 'unknown') isComplete = false;
      else if (!found && this.#known.has(path)) gone.push(path);
      else if (!found) isComplete &&= !this.#hasFilesIn(path);
      else if (!found.isFile()) isComplete = false;
      else if (isReadByName(basename(path)) && this.#mayDiffer(path, stampOf(found))) changed.push(path);
    }
    return { keys: await this.#take(gone, changed), isComplete };
  }

  async #scan(): Promise<Scan | undefined> {
    const { folder, enter, problems } = this.#ports;
    try {
      const found = await scan(folder, enter);
      problems.replace('folder', found.problems);
      return found;
    } catch (error) {
      const why = isMissing(error) ? 'is not there' : `cannot be read: ${reasonOf(error)}`;
      const message = `the folder ${why}; what its files said before still counts`;
      problems.replace('folder', [{ reason: 'FolderMissing', file: '.', message }]);
      return undefined;
    }
  }

  #mayDiffer(file: string, stamp: Stamp): boolean {
    const known = this.#known.get(file);
    return (
      known?.stamp !== stamp || (!known.isCertain && performance.now() - known.readMs > COARSEST_CLOCK_MS)
    );
  }

  #hasFilesIn(path: string): boolean {
    return [...this.#known.keys()].some(file => file.startsWith(`${path}/`));
  }

  /** What has gone is taken first, so that what moved is not there twice. */
  async #take(gone: readonly string[], changed: readonly string[]): Promise<readonly Key[]> {
    const keys: Key[] = [];
    for (const file of gone) keys.push(...(await this.#attempt(() => this.#drop(file))));
    for (let at = 0; at < changed.length; at += AT_ONCE) {
      const some = changed.slice(at, at + AT_ONCE);
      const read = await Promise.all(some.map(file => this.#attempt(() => this.#read(file))));
      keys.push(...read.flat());
    }
    return keys;
  }

  /** A file that cannot be taken costs nothing but itself, and is read again at the next look. */
  async #attempt(take: () => readonly Key[] | Promise<readonly Key[]>): Promise<readonly Key[]> {
    try {
      return await take();
    } catch (failure) {
      this.#ports.reportFailure(failure);
      return [];
    }
  }

  #drop(file: string): readonly Key[] {
    this.#ports.problems.replace(`file ${file}`, []);
    const keys = this.#ports.definitions.replace(file, new Map(), performance.now());
    this.#ports.written?.replace(file, new Map(), performance.now());
    this.#known.delete(file);
    return keys;
  }

  async #read(file: string): Promise<readonly Key[]> {
    const read = await readSource(join(this.#ports.folder, file));
    switch (read.is) {
      case 'gone':
        return this.#drop(file);
      case 'unreadable':
        this.#ports.problems.replace(`file ${file}`, [{ reason: 'Unreadable', file, message: read.why }]);
        this.#ports.written?.fail(file);
        this.#remember(file, read.stamp, '');
        return [];
      case 'text':
        return this.#takeText(file, read);
    }
  }

  #takeText(file: string, { stamp, hash, text }: FileRead & { readonly is: 'text' }): readonly Key[] {
    const { definitions, written, defaultNamespace, problems } = this.#ports;
    if (this.#known.get(file)?.hash === hash) {
      this.#remember(file, stamp, hash);
      return [];
    }
    const before = definitions.of(file);
    const wanted = written ? { writtenBefore: written.of(file) } : {};
    const { says, writes, problems: found } = interpret(text, { file, before, ...wanted, defaultNamespace });
    problems.replace(`file ${file}`, found);
    const keys = definitions.replace(file, says, performance.now());
    written?.replace(file, writes, performance.now());
    if (found.some(({ reason }) => reason !== 'Duplicate')) written?.fail(file);
    this.#remember(file, stamp, hash);
    return keys;
  }

  #remember(file: string, stamp: Stamp, hash: string): void {
    const old = this.#known.get(file);
    const readMs = performance.now();
    const isSame = old?.stamp === stamp && old.hash === hash;
    this.#known.set(file, {
      stamp,
      hash,
      readMs,
      isCertain: isSame && readMs - old.readMs > COARSEST_CLOCK_MS,
    });
  }
}

function noneOrUnknown(error: unknown): 'unknown' | undefined {
  return isMissing(error) ? undefined : 'unknown';
}

/** A path, and those of all folders that it lies in. */
function pathsAround(path: string): readonly string[] {
  const steps = path.split('/');
  return steps.map((_, at) => steps.slice(0, at + 1).join('/'));
}
