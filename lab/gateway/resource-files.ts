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
import { until } from '../process/wait.ts';

type Files = Pick<Gateway, 'resources' | 'log'>;

/**
 * Replaces the objects of a name, and waits until Envoy Gateway has read them. While one file of the folder is refused, no
 * other is read: after a refusal the previous content is restored and read before this fails.
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

/** Removes the objects of a name, and waits until Envoy Gateway has noticed. */
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

/** By a rename, so that Envoy Gateway never reads a part of it. */
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

/** Waits for the log line by which Envoy Gateway reports that it has read a changed file, or why not. */
async function loaded({ log }: Files, file: string, change: () => void): Promise<void> {
  const before = statSync(log).size;
  change();
  const outcome = await until(
    `Envoy Gateway to read ${file}`,
    note => {
      const lines = readFileSync(log).subarray(before).toString().split('\n');
      note(lines.slice(-5).join('\n'));
      const seen = lines.findIndex(
        line => line.includes('file changed') && line.includes(JSON.stringify(file)),
      );
      const after = seen === -1 ? [] : lines.slice(seen);
      return Promise.resolve(after.find(line => line.includes(LOADED) || line.includes(REFUSED)));
    },
    { everyMs: 10 },
  );
  if (outcome.includes(REFUSED)) throw new Error(`Envoy Gateway refused ${file}:\n${outcome}`);
}

const MAX_BYTES = 1 << 20;

/** Returns a function that returns the refusals in Envoy Gateway's log since its last call. After one, no file is read until it is corrected. */
export function followRefusals({ log }: Pick<Gateway, 'log'>): () => readonly string[] {
  let at = 0;
  let rest = '';
  return () => {
    const bytes = Buffer.alloc(MAX_BYTES);
    const file = openSync(log, 'r');
    try {
      const length = readSync(file, bytes, 0, MAX_BYTES, at);
      at += length;
      const lines = `${rest}${bytes.toString('utf8', 0, length)}`.split('\n');
      rest = lines.pop() ?? '';
      return lines.filter(line => line.includes(REFUSED)).map(reasonOf);
    } finally {
      closeSync(file);
    }
  };
}

/** The reason is a field at the end of the line. */
function reasonOf(line: string): string {
  const [, why] = /"error": ("(?:[^"\\]|\\.)*")/.exec(line) ?? [];
  return why === undefined ? line : String(JSON.parse(why));
}
