import { createHash } from 'node:crypto';
import { renameSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { kindOfPart } from './generated-part.ts';

/** A file by which a folder is known as ours; Envoy Gateway reads no hidden files. */
const MARK = '.mesh-gateway';

/**
 * A flat folder of a few files that are replaced as a whole, and written only where they differ; its owner alone reads it.
 * Whoever reads it reads everything whenever one file has changed, so that what changes at once is one file where it can be.
 */
export class GeneratedFolder {
  readonly #path: string;
  /** The text of each part. */
  readonly #parts = new Map<string, string>();
  /** The text of each file, as it is on disk. */
  #files: ReadonlyMap<string, string> = new Map();
  #isChanged = false;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Makes the folder, or takes in what an earlier run has left in it, and returns the names of the files that are not ours;
   * refuses one that was filled by somebody else.
   */
  async open(): Promise<readonly string[]> {
    await mkdir(this.#path, { recursive: true, mode: 0o700 });
    const entries = await readdir(this.#path, { withFileTypes: true });
    if (entries.length > 0 && !entries.some(({ name }) => name === MARK))
      throw new Error(`${this.#path} has files that are not from here: name an empty folder`);
    await chmod(this.#path, 0o700);
    await writeFile(join(this.#path, MARK), '', { mode: 0o600 });
    const names = entries.filter(entry => entry.isFile()).map(({ name }) => name);
    for (const name of names.filter(isUnfinished)) await rm(join(this.#path, name), { force: true });
    const files = new Map<string, string>();
    for (const name of names.filter(isGeneratedFile)) {
      await chmod(join(this.#path, name), 0o600);
      files.set(name, await readFile(join(this.#path, name), 'utf8'));
    }
    this.#files = files;
    this.#parts.clear();
    for (const [file, text] of files)
      for (const [part, said] of partsIn(text)) if (fileOfPart(part) === file) this.#parts.set(part, said);
    this.#isChanged = true;
    return names.filter(name => !name.startsWith('.') && !isGeneratedFile(name));
  }

  /** Sets the text of a part, or what it becomes by the text that is there. It is not seen yet. */
  put(part: string, text: string, next: (now: string) => string): void {
    const known = this.#parts.get(part);
    const becomes = known === undefined || known === text ? text : next(known);
    if (known === becomes) return;
    this.#parts.set(part, becomes);
    this.#isChanged = true;
  }

  /** Takes a part away. It is still seen. */
  remove(part: string): void {
    if (this.#parts.delete(part)) this.#isChanged = true;
  }

  parts(): readonly string[] {
    return [...this.#parts.keys()];
  }

  has(part: string): boolean {
    return this.#parts.has(part);
  }

  /** Shows all that was put and removed. */
  async show(): Promise<void> {
    if (!this.#isChanged) return;
    const texts = textsOfFiles(this.#parts);
    const changed = [...texts].filter(([file, text]) => this.#files.get(file) !== text);
    for (const [file, text] of changed) await writeFile(this.#unfinished(file), text, { mode: 0o600 });
    for (const [file] of changed) renameSync(this.#unfinished(file), join(this.#path, file));
    for (const file of this.#files.keys())
      if (!texts.has(file)) await rm(join(this.#path, file), { force: true });
    [this.#files, this.#isChanged] = [texts, false];
  }

  #unfinished(file: string): string {
    return join(this.#path, `.${file}${UNFINISHED}`);
  }
}

const UNFINISHED = '.new';

function isUnfinished(file: string): boolean {
  const isHidden = file.startsWith('.') && file.endsWith(UNFINISHED);
  return isHidden && isGeneratedFile(file.slice(1, -UNFINISHED.length));
}

/** The file of all parts but a few. */
const WHOLE = 'mesh-gateway.yaml';

/** Envoy Gateway knows one object of these kinds in each file: the last. */
const ONE_IN_A_FILE: readonly string[] = ['EnvoyProxy', 'GatewayClass'];

const ALONE = new RegExp(`^(${ONE_IN_A_FILE.join('|')})-[0-9a-f]{16}\\.yaml$`);

/** The name of the file that a part is in. */
export function fileOfPart(part: string): string {
  const kind = kindOfPart(part);
  if (!ONE_IN_A_FILE.includes(kind)) return WHOLE;
  return `${kind}-${createHash('sha256').update(part).digest('hex').slice(0, 16)}.yaml`;
}

/** Whether a file was made by an earlier run: others in the folder are not ours to change. */
export function isGeneratedFile(file: string): boolean {
  return file === WHOLE || ALONE.test(file);
}

const HEAD =
  '# Made for Envoy Gateway by mesh-gateway, and made anew at each change: change your own files instead.\n';

const BETWEEN = '---\n';

/** The text of each file. A part begins with its name; none of its own lines looks like that. */
export function textsOfFiles(
  parts: Iterable<readonly [name: string, text: string]>,
): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const [name, text] of [...parts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const file = fileOfPart(name);
    const before = texts.get(file);
    texts.set(file, `${before === undefined ? HEAD : before + BETWEEN}# ${name}\n${text}`);
  }
  return texts;
}

/** The text of each part of a file. */
export function partsIn(text: string): ReadonlyMap<string, string> {
  const [, ...pieces] = text.split(/^# (\S+)\n/m);
  const names = pieces.filter((_, index) => index % 2 === 0);
  return new Map(names.map((name, index) => [name, withoutEnd(pieces[2 * index + 1] ?? '')]));
}

function withoutEnd(text: string): string {
  return text.endsWith(BETWEEN) ? text.slice(0, -BETWEEN.length) : text;
}
