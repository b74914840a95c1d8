import type { Dirent, Stats } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Problem } from './problems.ts';
import { isMissing, noneIfMissing, reasonOf } from './disk.ts';

/** What tells whether a file has changed since it was last read. */
export type Stamp = string;

/** What lies in a folder, by paths below it, and what is wrong there. */
export type Scan = {
  readonly files: ReadonlyMap<string, Stamp>;
  /** Files and folders of which nothing is known now, so that nothing below them is known to be gone. */
  readonly unknown: readonly string[];
  readonly problems: readonly Problem[];
};

/** A folder in which something may change: where it is, which one that is, and its path if it is read. */
export type Folder = {
  readonly absolute: string;
  readonly identity: string;
  readonly path?: string;
  /** A name in it that matters; where none is said, all do. */
  readonly only?: string;
};

/** Told of each folder before it is listed, so that nothing that happens there afterwards is missed. */
export type Enter = (folder: Folder) => void;

/** What has more than this is not a folder of declarations. */
export type Bounds = {
  readonly files: number;
  readonly folders: number;
  readonly depth: number;
  /** So many links may lie behind each other. */
  readonly links: number;
};

const BOUNDS: Bounds = { files: 50_000, folders: 5_000, depth: 16, links: 4 };

/** Whether a file is read, by its name: not what is hidden, nor what editors and copiers leave beside it. */
export function isReadByName(name: string): boolean {
  return !name.startsWith('.') && /\.(ya?ml|json)$/.test(name);
}

/** The stamp of a file. */
export function stampOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): Stamp {
  return [dev, ino, size, mtimeMs, ctimeMs].join(':');
}

/**
 * Lists a folder with all below it, in the order of names; throws where that cannot be listed. Links are followed when
 * all else is known, and only to what was not found otherwise: nothing is there twice, and no circle is walked.
 */
export async function scan(root: string, enter: Enter, bounds: Bounds = BOUNDS): Promise<Scan> {
  const walk = new Walk(await realpath(root), enter, bounds);
  await walk.folder({ path: '', absolute: root, depth: 0, links: 0 });
  await walk.followLinks();
  return walk.result();
}

/** So many files are asked about at once. */
const AT_ONCE = 64;

type Place = {
  readonly path: string;
  readonly absolute: string;
  readonly depth: number;
  /** How many links lead here. */
  readonly links: number;
};

class Walk {
  readonly #root: string;
  readonly #enter: Enter;
  readonly #bounds: Bounds;
  readonly #files = new Map<string, Stamp>();
  readonly #unknown: string[] = [];
  readonly #problems: Problem[] = [];
  /** What was found, by device and inode. */
  readonly #seen = new Set<string>();
  readonly #links: Place[] = [];
  #folders = 0;

  constructor(root: string, enter: Enter, bounds: Bounds) {
    this.#root = root;
    this.#enter = enter;
    this.#bounds = bounds;
  }

  result(): Scan {
    return { files: this.#files, unknown: this.#unknown, problems: this.#problems };
  }

  async folder(place: Place): Promise<void> {
    const { path, absolute, depth } = place;
    const found = await stat(absolute);
    const identity = identityOf(found);
    if (this.#seen.has(identity)) return;
    if (depth > this.#bounds.depth) throw new LeftOut(`lies more than ${this.#bounds.depth} folders deep`);
    if (this.#folders >= this.#bounds.folders) throw new LeftOut('is one of too many folders');
    this.#seen.add(identity);
    this.#folders++;
    this.#enter({ absolute, identity: lifeOf(found), path });
    const entries = (await readdir(absolute, { withFileTypes: true })).filter(isLookedAt).sort(byName);
    const placed = entries.map(entry => ({ entry, place: placeIn(place, entry.name) }));
    const those = (is: (entry: Dirent) => boolean) =>
      placed.filter(({ entry }) => is(entry)).map(one => one.place);
    this.#links.push(...those(entry => entry.isSymbolicLink()));
    await this.#addFiles(those(entry => !entry.isSymbolicLink() && !entry.isDirectory()));
    for (const inner of those(entry => entry.isDirectory()))
      await this.#attempt(inner, () => this.folder(inner));
  }

  /** Links that are found behind links come after them. */
  async followLinks(): Promise<void> {
    for (const link of this.#links) await this.#attempt(link, () => this.#follow(link));
  }

  /** Asks about many at once, and takes them in their order. */
  async #addFiles(places: readonly Place[]): Promise<void> {
    for (let at = 0; at < places.length; at += AT_ONCE) {
      const some = places.slice(at, at + AT_ONCE).map(place => ({ place, found: stat(place.absolute) }));
      await Promise.allSettled(some.map(({ found }) => found));
      for (const { place, found } of some) {
        await this.#attempt(place, async () => this.#addFile(place.path, await found));
      }
    }
  }

  #addFile(path: string, found: Stats): void {
    if (!found.isFile()) throw new LeftOut('is neither a file nor a folder', 'Unreadable');
    if (this.#files.size >= this.#bounds.files) throw new LeftOut('is one of too many files');
    this.#seen.add(identityOf(found));
    this.#files.set(path, stampOf(found));
  }

  async #follow(link: Place): Promise<void> {
    const found = await stat(link.absolute).catch(noneIfMissing);
    if (!found) throw new LeftOut('is a link to nothing', 'Unreadable');
    if (this.#seen.has(identityOf(found))) return undefined;
    if (!found.isDirectory() && !isReadByName(basename(link.path))) return undefined;
    const target = await realpath(link.absolute);
    if (!found.isDirectory()) return this.#linkedFile(link, target);
    if (link.links >= this.#bounds.links) throw new LeftOut('lies behind too many links');
    if (`${this.#root}/`.startsWith(target.endsWith('/') ? target : `${target}/`)) {
      throw new LeftOut('is a link to a folder around this one');
    }
    return this.folder({ ...link, links: link.links + 1 });
  }

  /** What such a file says can change where it really lies. */
  async #linkedFile({ path, absolute }: Place, target: string): Promise<void> {
    const folder = dirname(target);
    const around = await stat(folder);
    if (!this.#seen.has(identityOf(around)))
      this.#enter({ absolute: folder, identity: lifeOf(around), only: basename(target) });
    this.#addFile(path, await stat(absolute));
  }

  /** What goes away while it is looked at is gone; what cannot be looked at is unknown. */
  async #attempt({ path }: Place, look: () => Promise<void>): Promise<void> {
    try {
      await look();
    } catch (error) {
      if (isMissing(error)) return;
      this.#unknown.push(path);
      const { message, reason } =
        error instanceof LeftOut ? error : new LeftOut(`cannot be read: ${reasonOf(error)}`, 'Unreadable');
      this.#problems.push({ reason, file: path, message });
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

function placeIn({ path, absolute, depth, links }: Place, name: string): Place {
  return {
    path: path === '' ? name : `${path}/${name}`,
    absolute: join(absolute, name),
    depth: depth + 1,
    links,
  };
}

/** Folders and links may have any name that is not hidden. */
function isLookedAt(entry: Dirent): boolean {
  if (entry.isDirectory() || entry.isSymbolicLink()) {
    return !entry.name.startsWith('.') && entry.name !== 'node_modules';
  }
  return isReadByName(entry.name);
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
