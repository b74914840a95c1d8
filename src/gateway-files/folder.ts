import { renameSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileOfPart, isGeneratedFile, partsIn, textOfParts } from './parts.ts';

/** What the folder holds: the names of the parts of our files, and of the files that are not ours. */
export type Contents = { readonly parts: readonly string[]; readonly strangers: readonly string[] };

/**
 * A flat folder of a few files that are replaced as a whole, and written only where they differ; its owner alone reads it.
 * Whoever reads it reads everything whenever one file has changed, so that what changes at once is one file where it can be.
 */
export class GeneratedFolder {
  readonly path: string;
  /** The text of each part. */
  readonly #parts = new Map<string, string>();
  /** The files that do not say yet what their parts do. */
  readonly #behind = new Set<string>();

  constructor(path: string) {
    this.path = path;
  }

  /** Makes the folder, or takes in what an earlier run has left in it; refuses one that was filled by somebody else. */
  async open(): Promise<Contents> {
    this.#parts.clear();
    this.#behind.clear();
    await mkdir(this.path, { recursive: true, mode: 0o700 });
    const entries = await readdir(this.path, { withFileTypes: true });
    if (entries.length > 0 && !entries.some(({ name }) => name === MARK))
      throw new Error(`${this.path} has files that are not from here: name an empty folder`);
    await chmod(this.path, 0o700);
    await writeFile(join(this.path, MARK), '', { mode: 0o600 });
    for (const { name } of entries.filter(entry => isUnfinished(entry.name)))
      await rm(join(this.path, name), { force: true });
    const files = entries.filter(entry => entry.isFile()).map(({ name }) => name);
    for (const file of files.filter(isGeneratedFile)) {
      await chmod(join(this.path, file), 0o600);
      this.#takeIn(file, await readFile(join(this.path, file), 'utf8'));
    }
    return {
      parts: [...this.#parts.keys()],
      strangers: files.filter(file => !file.startsWith('.') && !isGeneratedFile(file)),
    };
  }

  /** Whatever is not just as it would be written is written anew. */
  #takeIn(file: string, text: string): void {
    const parts = [...partsIn(text)].filter(([part]) => fileOfPart(part) === file);
    for (const [part, said] of parts) this.#parts.set(part, said);
    if (textOfParts(parts) !== text) this.#behind.add(file);
  }

  /** Has a part say a text, or what it becomes by the text that is there. It is not seen yet. */
  put(part: string, text: string, next: (now: string) => string): void {
    const known = this.#parts.get(part);
    const becomes = known === undefined || known === text ? text : next(known);
    if (known === becomes) return;
    this.#parts.set(part, becomes);
    this.#behind.add(fileOfPart(part));
  }

  /** How many parts there are. */
  get size(): number {
    return this.#parts.size;
  }

  has(part: string): boolean {
    return this.#parts.has(part);
  }

  /** Takes a part away. It is still seen. */
  remove(part: string): void {
    if (this.#parts.delete(part)) this.#behind.add(fileOfPart(part));
  }

  /** Shows all that was put and removed. */
  async show(): Promise<void> {
    const files = [...this.#behind];
    const texts = textsByFile(this.#parts, files);
    for (const [file, text] of texts) await writeFile(this.#unfinished(file), text, { mode: 0o600 });
    for (const file of texts.keys()) renameSync(this.#unfinished(file), join(this.path, file));
    for (const file of files) if (!texts.has(file)) await rm(join(this.path, file), { force: true });
    this.#behind.clear();
  }

  #unfinished(file: string): string {
    return join(this.path, `.${file}${UNFINISHED}`);
  }
}

/** The text of each of some files that has any parts. */
function textsByFile(
  parts: ReadonlyMap<string, string>,
  files: readonly string[],
): ReadonlyMap<string, string> {
  const texts = files.map(file => [file, [...parts].filter(([part]) => fileOfPart(part) === file)] as const);
  return new Map(texts.flatMap(([file, own]) => (own.length > 0 ? [[file, textOfParts(own)]] : [])));
}

/** A file by which a folder is known as ours; Envoy Gateway reads no hidden files. */
const MARK = '.mesh-gateway';

const UNFINISHED = '.new';

function isUnfinished(file: string): boolean {
  return (
    file.startsWith('.') && file.endsWith(UNFINISHED) && isGeneratedFile(file.slice(1, -UNFINISHED.length))
  );
}
