import type { Dirent, Stats } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isMissing, reasonOf, stampOf } from './file.ts';
import type { Stamp } from './file.ts';
import type { Problem } from './problems.ts';

/** What lies in a folder, by paths below it, and what is wrong there. */
export type Scan = {
  readonly files: ReadonlyMap<string, Stamp>;
  /** Files and folders of which nothing is known now, so that nothing below them is known to be removed. */
  readonly unknown: readonly string[];
  readonly problems: readonly Problem[];
};

/** A folder to watch: where it is, which one that is, and its path if it is read. */
export type Folder = {
  readonly absolute: string;
  readonly identity: string;
  readonly path?: string;
  /** The one name in it that matters; without it, all do. */
  readonly only?: string;
};

/** Called with each folder before it is listed, so that nothing that happens there afterwards is missed. */
export type Enter = (folder: Folder) => void;

/** What has more than this is not a folder of declarations. */
export type Bounds = {
  readonly files: number;
  readonly folders: number;
  readonly depth: number;
  /** Links behind each other. */
  readonly links: number;
};

const BOUNDS: Bounds = { files: 50_000, folders: 5_000, depth: 16, links: 4 };

/** Whether a file is read, by its name: not what is hidden, nor what editors and copiers leave beside it. */
export function isReadByName(name: string): boolean {
  return !name.startsWith('.') && /\.(ya?ml|json)$/.test(name);
}

/**
 * Lists a folder with all below it, in the order of names; throws where that cannot be listed. Links are followed when
 * all else is known, and only to what was not found otherwise: nothing is found twice, and no circle is walked.
 */
export async function scan(root: string, enter: Enter, bounds: Bounds = BOUNDS): Promise<Scan> {
  const walk = new Walk(await realpath(root), enter, bounds);
  await walk.folder({ path: '', absolute: root, depth: 0, links: 0 });
  await walk.followLinks();
  return walk;
}

type Place = {
  readonly path: string;
  readonly absolute: string;
  readonly depth: number;
  /** How many links lead here. */
  readonly links: number;
};

class Walk implements Scan {
  readonly files = new Map<string, Stamp>();
  readonly unknown: string[] = [];
  readonly problems: Problem[] = [];
  readonly #root: string;
  readonly #enter: Enter;
  readonly #bounds: Bounds;
  /** What was found, by device and inode. */
  readonly #seen = new Set<string>();
  readonly #links: Place[] = [];
  #folders = 0;

  constructor(root: string, enter: Enter, bounds: Bounds) {
    this.#root = root;
    this.#enter = enter;
    this.#bounds = bounds;
  }

  async folder(place: Place): Promise<void> {
    const { path, absolute, depth, links } = place;
    const found = await stat(absolute);
    if (this.#seen.has(identityOf(found))) return;
    if (depth > this.#bounds.depth) throw new LeftOut(`lies more than ${this.#bounds.depth} folders deep`);
    if (++this.#folders > this.#bounds.folders) throw new LeftOut('is one of too many folders');
    this.#seen.add(identityOf(found));
    this.#enter({ absolute, identity: lifeOf(found), path });
    const entries = (await readdir(absolute, { withFileTypes: true })).filter(isListed).sort(byName);
    const placesOf = (is: (entry: Dirent) => boolean): readonly Place[] =>
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

  /** Links that are found behind links come after them. */
  async followLinks(): Promise<void> {
    for (const link of this.#links) await this.#attempt(link, () => this.#follow(link));
  }

  #addFile(path: string, found: Stats | undefined): void {
    if (!found?.isFile()) throw new LeftOut('is neither a file nor a folder', 'Unreadable');
    if (this.files.size >= this.#bounds.files) throw new LeftOut('is one of too many files');
    this.#seen.add(identityOf(found));
    this.files.set(path, stampOf(found));
  }

  async #follow(link: Place): Promise<void> {
    const found = await stat(link.absolute).catch((error: unknown) => {
      throw isMissing(error) ? new LeftOut('is a link to nothing', 'Unreadable') : error;
    });
    if (this.#seen.has(identityOf(found))) return;
    const target = await realpath(link.absolute);
    if (found.isDirectory()) {
      if (link.links >= this.#bounds.links) throw new LeftOut('lies behind too many links');
      if (`${this.#root}/`.startsWith(target.endsWith('/') ? target : `${target}/`))
        throw new LeftOut('is a link to a folder around this one');
      await this.folder({ ...link, links: link.links + 1 });
    } else if (isReadByName(basename(link.path))) await this.#linkedFile(link, target);
  }

  /** What such a file holds can change where it really lies. */
  async #linkedFile({ path, absolute }: Place, target: string): Promise<void> {
    const folder = dirname(target);
    const around = await stat(folder);
    if (!this.#seen.has(identityOf(around)))
      this.#enter({ absolute: folder, identity: lifeOf(around), only: basename(target) });
    this.#addFile(path, await stat(absolute));
  }

  /** What is removed meanwhile is missing; what cannot be read is unknown. */
  async #attempt({ path }: Place, add: () => Promise<void>): Promise<void> {
    try {
      await add();
    } catch (error) {
      if (isMissing(error)) return;
      const { message, reason } =
        error instanceof LeftOut ? error : new LeftOut(`cannot be read: ${reasonOf(error)}`, 'Unreadable');
      this.unknown.push(path);
      this.problems.push({ reason, file: path, message });
    }
  }
}

/** Why something is not part of what is found. */
class LeftOut extends Error {
  readonly reason: Problem['reason'];

  constructor(message: string, reason: Problem['reason'] = 'TooMuch') {
    super(message);
    this.reason = reason;
  }
}

/** Folders and links may have any name that is not hidden. */
function isListed(entry: Dirent): boolean {
  if (!entry.isDirectory() && !entry.isSymbolicLink()) return isReadByName(entry.name);
  return !entry.name.startsWith('.') && entry.name !== 'node_modules';
}

function byName(a: Dirent, b: Dirent): number {
  return a.name < b.name ? -1 : 1;
}

function identityOf({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}

/** What tells a folder also from a later one that got its inode, where the file system knows when it was made. */
export function lifeOf(found: Stats): string {
  return `${identityOf(found)}:${found.birthtimeMs}`;
}
