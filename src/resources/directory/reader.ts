import { lstat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { WrittenKey } from '../manifests.ts';
import type { Definitions } from './definitions.ts';
import { isMissing, readSource, reasonOf } from './file.ts';
import type { FileRead, Stamp } from './file.ts';
import type { ProblemList } from './problems.ts';
import { isReadByName, scan } from './scan.ts';
import type { Enter } from './scan.ts';
import { interpret } from './parse-file.ts';
import type { Context } from './parse-file.ts';

/** What a reader of a folder works with. */
export type ReaderDeps = Pick<Context, 'defaultNamespace' | 'keepsWritten'> & {
  readonly folder: string;
  readonly definitions: Definitions;
  readonly problems: ProblemList;
  readonly enter: Enter;
  readonly reportFailure: (failure: unknown) => void;
};

/** What came of reading: the objects that may have changed, and whether all that exists was seen. */
export type Reading = { readonly keys: readonly WrittenKey[]; readonly isComplete: boolean };

/** What is known of a file since it was read. */
type Known = {
  readonly stamp: Stamp;
  readonly hash: string;
  /** It was read so soon after it changed that it may have changed again in the same tick of a coarse clock. */
  readonly isFresh: boolean;
};

/** No file system's clock has longer ticks. */
const LONGEST_TICK_MS = 2000;

const FILES_READ_AT_ONCE = 16;

/** Reads the files of a folder, all or some, and takes what they declare into the definitions. */
export class FolderReader {
  readonly #deps: ReaderDeps;
  readonly #known = new Map<string, Known>();
  readonly #unread = new Set<string>();

  constructor(deps: ReaderDeps) {
    this.#deps = deps;
  }

  /** Whether there are files that could not be read whole yet, so that nothing is known to be removed. */
  hasUnread(): boolean {
    return this.#unread.size > 0;
  }

  /** Lists everything, and reads the files that changed. */
  async readAll(): Promise<Reading> {
    const { folder, enter, problems, definitions } = this.#deps;
    const found = await scan(folder, enter).catch((error: unknown) => {
      const why = isMissing(error) ? 'is not there' : `cannot be read: ${reasonOf(error)}`;
      const message = `the folder ${why}; what its files said before still counts`;
      problems.replace('folder', [{ reason: 'FolderMissing', file: '.', message }]);
    });
    if (!found) return { keys: [], isComplete: false };
    problems.replace('folder', found.problems);
    const unknown = new Set(found.unknown);
    const isUnknown = (file: string) => pathsAround(file).some(path => unknown.has(path));
    const before = new Set([...this.#known.keys(), ...definitions.files()]);
    const removed = [...before].filter(file => !found.files.has(file) && !isUnknown(file));
    const changed = [...found.files].filter(([file, stamp]) => {
      const known = this.#known.get(file);
      return known?.stamp !== stamp || known.isFresh;
    });
    const keys = await this.#take(
      removed,
      changed.map(([file]) => file),
    );
    return { keys, isComplete: true };
  }

  /** Reads what has these paths; that is not complete where something else than a file came or went. */
  async readSome(paths: Iterable<string>): Promise<Reading> {
    const removed: string[] = [];
    const changed: string[] = [];
    let isComplete = true;
    for (const path of paths) {
      const found = await lstat(join(this.#deps.folder, path)).catch((error: unknown) =>
        isMissing(error) ? ('missing' as const) : undefined,
      );
      if (found === 'missing' && this.#known.has(path)) removed.push(path);
      else if (found === 'missing') isComplete &&= !this.#hasFilesIn(path);
      else if (!found?.isFile()) isComplete = false;
      else if (isReadByName(basename(path))) changed.push(path);
    }
    return { keys: await this.#take(removed, changed), isComplete };
  }

  #hasFilesIn(path: string): boolean {
    return [...this.#known.keys()].some(file => file.startsWith(`${path}/`));
  }

  /** What was removed is taken first, so that what moved is not defined twice. */
  async #take(removed: readonly string[], changed: readonly string[]): Promise<readonly WrittenKey[]> {
    const keys = removed.flatMap(file => this.#drop(file));
    for (let at = 0; at < changed.length; at += FILES_READ_AT_ONCE) {
      const some = changed.slice(at, at + FILES_READ_AT_ONCE);
      keys.push(...(await Promise.all(some.map(file => this.#attempt(file)))).flat());
    }
    return keys;
  }

  /** A file that cannot be taken costs nothing but itself, and is read again at the next rescan. */
  async #attempt(file: string): Promise<readonly WrittenKey[]> {
    try {
      return await this.#read(file);
    } catch (failure) {
      this.#deps.reportFailure(failure);
      return [];
    }
  }

  #drop(file: string): readonly WrittenKey[] {
    this.#deps.problems.replace(`file ${file}`, []);
    this.#known.delete(file);
    this.#unread.delete(file);
    return this.#deps.definitions.replace(file, new Map(), performance.now());
  }

  async #read(file: string): Promise<readonly WrittenKey[]> {
    const { folder, problems, definitions } = this.#deps;
    const read = await readSource(join(folder, file));
    switch (read.is) {
      case 'missing':
        return this.#drop(file);
      case 'unreadable':
        problems.replace(`file ${file}`, [{ reason: 'Unreadable', file, message: read.why }]);
        if (definitions.of(file).size === 0) this.#unread.add(file);
        this.#known.set(file, { stamp: read.stamp, hash: '', isFresh: false });
        return [];
      case 'text':
        return this.#takeText(file, read);
    }
  }

  #takeText(file: string, { stamp, hash, text, changedMs }: FileRead & { readonly is: 'text' }) {
    const isFresh = Date.now() - changedMs < LONGEST_TICK_MS;
    const isSame = this.#known.get(file)?.hash === hash;
    if (isSame) {
      this.#known.set(file, { stamp, hash, isFresh });
      return [];
    }
    const { definitions, problems } = this.#deps;
    const before = definitions.of(file);
    const { declarations, problems: found } = interpret(text, { ...this.#deps, file, before });
    problems.replace(`file ${file}`, found);
    if (found.every(({ reason }) => reason === 'Duplicate')) this.#unread.delete(file);
    else if (before.size === 0) this.#unread.add(file);
    const keys = definitions.replace(file, declarations, performance.now());
    this.#known.set(file, { stamp, hash, isFresh });
    return keys;
  }
}

/** A path, and those of all folders that it lies in. */
function pathsAround(path: string): readonly string[] {
  const steps = path.split('/');
  return steps.map((_, at) => steps.slice(0, at + 1).join('/'));
}
