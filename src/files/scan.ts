import type { Dirent, Stats } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isMissing, reasonOf, stampOf } from './file.ts';
import type { Stamp } from './file.ts';
import type { FileProblem } from './problems.ts';

/** The files in a folder by relative path, and its problems. */
export type Scan = {
  readonly files: ReadonlyMap<string, Stamp>;
  /** Paths that could not be read: files at or below them are not taken to be deleted. */
  readonly unknown: readonly string[];
  readonly problems: readonly FileProblem[];
};

/** A folder to watch; `path` is relative, for folders that are scanned. */
export type WatchedFolder = {
  readonly absolute: string;
  readonly identity: string;
  readonly path?: string;
  /** The only name whose events count; without it, all do. */
  readonly only?: string;
};

/** Called with each folder before it is listed, so that it can be watched without missing a change. */
export type OnFolder = (folder: WatchedFolder) => void;

export type Bounds = {
  readonly files: number;
  readonly folders: number;
  readonly depth: number;
  /** Chained links to folders. */
  readonly links: number;
};

const BOUNDS: Bounds = { files: 50_000, folders: 5_000, depth: 16, links: 4 };

/** Whether a file is read, by its name: hidden files and those of editors are not. */
export function isReadByName(name: string): boolean {
  return !name.startsWith('.') && /\.(ya?ml|json)$/.test(name);
}

/**
 * Lists a folder recursively, sorted by name; throws where the folder itself cannot be listed. Links are followed last,
 * and only to files and folders that were not found before, so nothing is found twice and cycles end.
 */
export async function scan(root: string, onFolder: OnFolder, bounds: Bounds = BOUNDS): Promise<Scan> {
  const walk = new Walk(await realpath(root), onFolder, bounds);
  await walk.folder({ path: '', absolute: root, depth: 0, links: 0 });
  await walk.followLinks();
  return walk;
}

type FoundFolder = {
  readonly path: string;
  readonly absolute: string;
  readonly depth: number;
  readonly links: number;
};

class Walk implements Scan {
  readonly files = new Map<string, Stamp>();
  readonly unknown: string[] = [];
  readonly problems: FileProblem[] = [];
  readonly #root: string;
  readonly #onFolder: OnFolder;
  readonly #bounds: Bounds;
  /** By device and inode. */
  readonly #seen = new Set<string>();
  readonly #links: FoundFolder[] = [];
  #folders = 0;

  constructor(root: string, onFolder: OnFolder, bounds: Bounds) {
    this.#root = root;
    this.#onFolder = onFolder;
    this.#bounds = bounds;
  }

  async folder(place: FoundFolder): Promise<void> {
    const { path, absolute, depth, links } = place;
    const found = await stat(absolute);
    if (this.#seen.has(inodeOf(found))) return;
    if (depth > this.#bounds.depth)
      throw new SkippedError(`lies more than ${this.#bounds.depth} folders deep`);
    if (++this.#folders > this.#bounds.folders) throw new SkippedError('is one of too many folders');
    this.#seen.add(inodeOf(found));
    this.#onFolder({ absolute, identity: folderIdentity(found), path });
    const entries = (await readdir(absolute, { withFileTypes: true })).filter(isListed).sort(byName);
    const placesOf = (is: (entry: Dirent) => boolean): readonly FoundFolder[] =>
      entries.filter(is).map(({ name }) => ({
        path: path === '' ? name : `${path}/${name}`,
        absolute: join(absolute, name),
        depth: depth + 1,
        links,
      }));
    this.#links.push(...placesOf(entry => entry.isSymbolicLink()));
    const files = placesOf(entry => !entry.isSymbolicLink() && !entry.isDirectory());
    const pending = files.map(file => stat(file.absolute));
    await Promise.allSettled(pending);
    for (const [at, file] of files.entries())
      await this.#attempt(file, async () => this.#addFile(file.path, await pending[at]));
    for (const inner of placesOf(entry => entry.isDirectory()))
      await this.#attempt(inner, () => this.folder(inner));
  }

  /** Links that are found behind links are appended while this runs. */
  async followLinks(): Promise<void> {
    for (const link of this.#links) await this.#attempt(link, () => this.#follow(link));
  }

  #addFile(path: string, found: Stats | undefined): void {
    if (!found?.isFile()) throw new SkippedError('is neither a file nor a folder', 'Unreadable');
    if (this.files.size >= this.#bounds.files) throw new SkippedError('is one of too many files');
    this.#seen.add(inodeOf(found));
    this.files.set(path, stampOf(found));
  }

  async #follow(link: FoundFolder): Promise<void> {
    const found = await stat(link.absolute).catch((error: unknown) => {
      throw isMissing(error) ? new SkippedError('is a link to nothing', 'Unreadable') : error;
    });
    if (this.#seen.has(inodeOf(found))) return;
    const target = await realpath(link.absolute);
    if (found.isDirectory()) {
      if (link.links >= this.#bounds.links) throw new SkippedError('lies behind too many links');
      if (`${this.#root}/`.startsWith(target.endsWith('/') ? target : `${target}/`))
        throw new SkippedError('is a link to a folder around this one');
      await this.folder({ ...link, links: link.links + 1 });
    } else if (isReadByName(basename(link.path))) await this.#linkedFile(link, target);
  }

  /** The target's folder is watched, where its content changes. */
  async #linkedFile({ path, absolute }: FoundFolder, target: string): Promise<void> {
    const folder = dirname(target);
    const around = await stat(folder);
    if (!this.#seen.has(inodeOf(around)))
      this.#onFolder({ absolute: folder, identity: folderIdentity(around), only: basename(target) });
    this.#addFile(path, await stat(absolute));
  }

  /** Skips what was deleted in the meantime; reports what cannot be read. */
  async #attempt({ path }: FoundFolder, add: () => Promise<void>): Promise<void> {
    try {
      await add();
    } catch (error) {
      if (isMissing(error)) return;
      const { message, reason } =
        error instanceof SkippedError
          ? error
          : new SkippedError(`cannot be read: ${reasonOf(error)}`, 'Unreadable');
      this.unknown.push(path);
      this.problems.push({ reason, file: path, text: message });
    }
  }
}

class SkippedError extends Error {
  readonly reason: FileProblem['reason'];

  constructor(message: string, reason: FileProblem['reason'] = 'TooMuch') {
    super(message);
    this.reason = reason;
  }
}

function isListed(entry: Dirent): boolean {
  if (!entry.isDirectory() && !entry.isSymbolicLink()) return isReadByName(entry.name);
  return !entry.name.startsWith('.') && entry.name !== 'node_modules';
}

function byName(a: Dirent, b: Dirent): number {
  return a.name < b.name ? -1 : 1;
}

function inodeOf({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}

/** Also differs for a later folder with the same inode, where the file system records creation times. */
export function folderIdentity(found: Stats): string {
  return `${inodeOf(found)}:${found.birthtimeMs}`;
}
