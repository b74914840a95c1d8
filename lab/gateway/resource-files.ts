import {
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  closeSync,
  openSync,
  readSync,
} from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../process/errors.ts';
import type { KubernetesObject } from './objects.ts';
import type { Gateway } from '../state.ts';
import { waitFor } from '../process/wait.ts';

type Files = Pick<Gateway, 'resources' | 'log'>;

/**
 * Writes objects under a name, in place of those that it stood for before, and waits until Envoy Gateway has read them.
 * While one file of the folder is refused, no other is read: so in place of a refused one there is again what was there
 * before, which is waited for too, and the refusal is an error.
 */
export async function putResources(
  files: Files,
  name: string,
  objects: readonly KubernetesObject[],
): Promise<void> {
  const file = fileOf(files, name);
  const before = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  const putBack = () =>
    before === undefined ? rmSync(file, { force: true }) : writeWhole(files, name, before);
  try {
    await loaded(files, file, () => writeResources(files, name, objects));
  } catch (error) {
    await loaded(files, file, putBack).catch((failure: unknown) => {
      throw new Error(`${messageOf(error)}\n${messageOf(failure)}`, { cause: error });
    });
    throw error;
  }
}

/** Takes the objects of a name away, and waits until Envoy Gateway has seen that. */
export async function removeResources(files: Files, name: string): Promise<void> {
  const file = fileOf(files, name);
  await loaded(files, file, () => rmSync(file));
}

/** Writes objects under a name; JSON is YAML. */
export function writeResources(
  files: Pick<Files, 'resources'>,
  name: string,
  objects: readonly KubernetesObject[],
): void {
  writeWhole(files, name, objects.map(object => `${JSON.stringify(object, null, 2)}\n`).join('---\n'));
}

/** As a whole, so that nobody reads half of it. */
function writeWhole({ resources }: Pick<Files, 'resources'>, name: string, text: string): void {
  const unfinished = join(resources, `.${name}`);
  writeFileSync(unfinished, text);
  renameSync(unfinished, fileOf({ resources }, name));
}

function fileOf({ resources }: Pick<Files, 'resources'>, name: string): string {
  return join(resources, `${name}.yaml`);
}

const LOADED = 'reload resources finished';
const REFUSED = 'error when reload resources';

/** Envoy Gateway tells only its log what it makes of a file: that it changed, and then that all are loaded, or why not. */
async function loaded({ log }: Files, file: string, change: () => void): Promise<void> {
  const before = statSync(log).size;
  change();
  const outcome = await waitFor(
    `Envoy Gateway to read ${file}`,
    note => {
      const said = readFileSync(log).subarray(before).toString().split('\n');
      note(said.slice(-5).join('\n'));
      const seen = said.findIndex(
        line => line.includes('file changed') && line.includes(JSON.stringify(file)),
      );
      const after = seen === -1 ? [] : said.slice(seen);
      return Promise.resolve(after.find(line => line.includes(LOADED) || line.includes(REFUSED)));
    },
    { everyMs: 10 },
  );
  if (outcome.includes(REFUSED)) throw new Error(`Envoy Gateway refused ${file}:\n${outcome}`);
}

const MOST_BYTES = 1 << 20;

/** Gives a function that gives what Envoy Gateway has refused since it was called last: until that is mended it reads nothing. */
export function followRefusals({ log }: Pick<Gateway, 'log'>): () => readonly string[] {
  let at = 0;
  let rest = '';
  return () => {
    const bytes = Buffer.alloc(MOST_BYTES);
    const file = openSync(log, 'r');
    try {
      const length = readSync(file, bytes, 0, MOST_BYTES, at);
      at += length;
      const lines = `${rest}${bytes.toString('utf8', 0, length)}`.split('\n');
      rest = lines.pop() ?? '';
      return lines.filter(line => line.includes(REFUSED)).map(reasonOf);
    } finally {
      closeSync(file);
    }
  };
}

/** The line ends with its fields, of which one says why. */
function reasonOf(line: string): string {
  const [, why] = /"error": ("(?:[^"\\]|\\.)*")/.exec(line) ?? [];
  return why === undefined ? line : String(JSON.parse(why));
}
