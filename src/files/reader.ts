import { lstat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { ManifestKey } from './manifests.ts';
import type { Definitions } from './definitions.ts';
import { isMissing, readSource, reasonOf } from './file.ts';
import type { FileRead, Stamp } from './file.ts';
import type { ProblemList } from './problems.ts';
import { isReadByName, scan } from './scan.ts';
import type { OnFolder } from './scan.ts';
import { parseFile } from './parse-file.ts';
import type { FileContext } from './parse-file.ts';

export type ReaderDeps = Pick<FileContext, 'defaultNamespace' | 'keepsManifests'> & {
  readonly folder: string;
  readonly definitions: Definitions;
  readonly problems: ProblemList;
  readonly onFolder: OnFolder;
  readonly reportFailure: (failure: unknown) => void;
};

/** The objects that may have changed, and whether every file was seen. */
export type Reading = { readonly keys: readonly ManifestKey[]; readonly isComplete: boolean };

/** A file as it was last read. */
type Known = {
  readonly stamp: Stamp;
  readonly hash: string;
  /** Read so soon after a change that a second change may have the same timestamp. */
  readonly isFresh: boolean;
};

/** The coarsest timestamps of file systems. */
const MAX_TICK_MS = 2000;

const MAX_CONCURRENT_READS = 16;

/** Reads the files of a folder, all or some, and updates the definitions. */
export class FolderReader {
  readonly #deps: ReaderDeps;
  readonly #known = new Map<string, Known>();
  readonly #unread = new Set<string>();

  constructor(deps: ReaderDeps) {
    this.#deps = deps;
  }

  /** Whether there are files that could never be read completely. */
  hasUnread(): boolean {
    return this.#unread.size > 0;
  }

  /** Scans the folder and reads the files that changed. */
  async readAll(): Promise<Reading> {
    const { folder, onFolder, problems, definitions } = this.#deps;
    const found = await scan(folder, onFolder).catch((error: unknown) => {
      const why = isMissing(error) ? 'does not exist' : `cannot be read: ${reasonOf(error)}`;
      const text = `the folder ${why}; its previous objects are kept`;
      problems.replace('folder', [{ reason: 'FolderMissing', file: '.', text }]);
    });
    if (!found) return { keys: [], isComplete: false };
    problems.replace('folder', found.problems);
    const unknown = new Set(found.unknown);
    const isUnknown = (file: string) => withParents(file).some(path => unknown.has(path));
    const before = new Set([...this.#known.keys(), ...definitions.files()]);
    const removed = [...before].filter(file => !found.files.has(file) && !isUnknown(file));
    const changed = [...found.files].filter(([file, stamp]) => {
      const known = this.#known.get(file);
      return known?.stamp !== stamp || known.isFresh;
    });
    const keys = await this.#update(
      removed,
      changed.map(([file]) => file),
    );
    return { keys, isComplete: true };
  }

  /** Reads the files of these paths; incomplete where a folder or link has changed. */
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
    return { keys: await this.#update(removed, changed), isComplete };
  }

  #hasFilesIn(path: string): boolean {
    return [...this.#known.keys()].some(file => file.startsWith(`${path}/`));
  }

  /** Deleted files come first, so that moved objects are not duplicates. */
  async #update(removed: readonly string[], changed: readonly string[]): Promise<readonly ManifestKey[]> {
    const keys = removed.flatMap(file => this.#drop(file));
    for (let start = 0; start < changed.length; start += MAX_CONCURRENT_READS) {
      const some = changed.slice(start, start + MAX_CONCURRENT_READS);
      keys.push(...(await Promise.all(some.map(file => this.#readOrReport(file)))).flat());
    }
    return keys;
  }

  /** After an unexpected error, the file is read again at the next rescan. */
  async #readOrReport(file: string): Promise<readonly ManifestKey[]> {
    try {
      return await this.#read(file);
    } catch (failure) {
      this.#deps.reportFailure(failure);
      return [];
    }
  }

  #drop(file: string): readonly ManifestKey[] {
    this.#deps.problems.replace(`file ${file}`, []);
    this.#known.delete(file);
    this.#unread.delete(file);
    return this.#deps.definitions.replace(file, new Map(), performance.now());
  }

  async #read(file: string): Promise<readonly ManifestKey[]> {
    const { folder, problems, definitions } = this.#deps;
    const read = await readSource(join(folder, file));
    switch (read.is) {
      case 'missing':
        return this.#drop(file);
      case 'unreadable':
        problems.replace(`file ${file}`, [{ reason: 'Unreadable', file, text: read.why }]);
        if (definitions.of(file).size === 0) this.#unread.add(file);
        this.#known.set(file, { stamp: read.stamp, hash: '', isFresh: false });
        return [];
      case 'text':
        return this.#parse(file, read);
    }
  }

  #parse(file: string, { stamp, hash, text, changedMs }: FileRead & { readonly is: 'text' }) {
    const isFresh = Date.now() - changedMs < MAX_TICK_MS;
    const isSame = this.#known.get(file)?.hash === hash;
    if (isSame) {
      this.#known.set(file, { stamp, hash, isFresh });
      return [];
    }
    const { definitions, problems } = this.#deps;
    const before = definitions.of(file);
    const { declarations, problems: found } = parseFile(text, { ...this.#deps, file, before });
    problems.replace(`file ${file}`, found);
    if (found.every(({ reason }) => reason === 'Repeated')) this.#unread.delete(file);
    else if (before.size === 0) this.#unread.add(file);
    const keys = definitions.replace(file, declarations, performance.now());
    this.#known.set(file, { stamp, hash, isFresh });
    return keys;
  }
}

/** A path and those of its parent folders. */
function withParents(path: string): readonly string[] {
  const steps = path.split('/');
  return steps.map((_, index) => steps.slice(0, index + 1).join('/'));
}
