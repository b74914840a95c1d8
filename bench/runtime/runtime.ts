import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { decode } from '../../src/api/objects/decode.ts';
import { refOf } from '../../src/api/key.ts';
import type { Key } from '../../src/api/key.ts';
import { tailnetsOf } from '../../src/api/objects/references.ts';
import type { Resource } from '../../src/api/objects/resource.ts';
import { openDirectory } from '../../src/files/directory.ts';
import type { Directory } from '../../src/files/directory.ts';
import type { Index } from '../../src/store/resources.ts';
import { ResourceStore } from '../../src/store/store.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { Queue } from '../../src/runtime/queue/queue.ts';
import { bundled } from '../bundled.ts';
import { median } from '../figures.ts';
import type { Bench, Figure } from '../figures.ts';
import { manyEndpoints } from '../many-endpoints.ts';

const byTailnet: Index<'MeshEndpoints'> = { name: 'tailnet', kind: 'MeshEndpoints', valuesOf: tailnetsOf };
const indexes = [byTailnet];

/** Measures the speed and memory of the store, its indexes, the queue, and a directory as the source. */
export const runtime: Bench = {
  duration: () => ({ aboutMs: 20_000 }),
  run: async onStep => {
    onStep('events of the store');
    const events = await eventFigure();
    onStep('memory of the store');
    const memory = memoryFigure();
    onStep(`a directory of ${FILES} files`);
    return [events, memory, ...(await directoryFigures())];
  },
};

function fail(failure: unknown): never {
  throw failure;
}

const OBJECTS = 10_000;
const REVISIONS = 5;

/** Each event changes an object, its index, and is reconciled by a worker that reads it. */
async function eventFigure(): Promise<Figure> {
  const store = new ResourceStore(indexes, fail);
  const revisions = Array.from({ length: REVISIONS }, (_, revision) =>
    Array.from({ length: OBJECTS }, (_object, index) => decoded(manyEndpoints(index, revision))),
  );
  let reconciled = 0;
  let whenAll: () => void = () => undefined;
  const all = new Promise<void>(resolve => (whenAll = resolve));
  const observer = { added: () => undefined, waited: () => undefined, retried: () => undefined };
  const work = () => {
    reconciled += 1;
    if (reconciled === OBJECTS * REVISIONS) whenAll();
    return Promise.resolve({ requeue: 'on-change' } as const);
  };
  const namespaceOf = (key: Key) => refOf(key).namespace;
  const queue = new Queue<Key>({ clock: systemClock, work, concurrency: 10, observer, namespaceOf });
  store.subscribe(({ key }) => queue.add(key, 'change'));
  queue.start();
  const startMs = performance.now();
  for (const objects of revisions) {
    for (const object of objects) store.put(object);
    // The queue runs between bursts: otherwise it would reconcile each key once.
    await queueIsEmpty(queue);
  }
  await all;
  const seconds = (performance.now() - startMs) / 1000;
  if (store.list('MeshEndpoints').length !== OBJECTS) throw new Error('the store lost objects');
  queue.stop();
  return {
    name: `store events through index and queue, ${OBJECTS * REVISIONS} of them`,
    value: (OBJECTS * REVISIONS) / seconds,
    unit: '/s',
    aim: 20_000,
    good: 'high',
  };
}

async function queueIsEmpty(queue: Queue<Key>): Promise<void> {
  const isBusy = () => {
    const { live, background, running } = queue.state();
    return live + background + running > 0;
  };
  while (isBusy()) await new Promise(resolve => setImmediate(resolve));
}

function decoded(value: unknown): Resource {
  const decoding = decode(value);
  if (decoding.is !== 'resource') throw new Error('an object was not read');
  return decoding.resource;
}

const MEGABYTE = 1024 * 1024;

function memoryFigure(): Figure {
  const bundle = bundled('runtime/memory');
  const output = execFileSync(process.execPath, ['--expose-gc', bundle], { encoding: 'utf8' });
  const memory = JSON.parse(output) as {
    readonly objects: number;
    readonly found: number;
    readonly rssBytes: number;
  };
  if (memory.objects !== OBJECTS || memory.found !== OBJECTS / 5)
    throw new Error(`not what was to be held: ${output}`);
  return {
    name: `memory of a process with ${OBJECTS} objects of 5 endpoints`,
    value: memory.rssBytes / MEGABYTE,
    unit: 'MB',
    aim: 170,
  };
}

const FILES = 2_000;
const BROKEN = 'zz-broken.yaml';
const CHANGES = 20;

async function directoryFigures(): Promise<readonly Figure[]> {
  const root = mkdtempSync(join(tmpdir(), 'mesh-bench-'));
  const seen = signal();
  const folder = join(root, 'folder');
  mkdirSync(folder);
  for (let index = 0; index < FILES; index += 1) writeObject(folder, index, 0);
  const startMs = performance.now();
  const directory = openDirectory({
    folder,
    indexes,
    report: problem => (problem.file.endsWith(BROKEN) ? seen.resolve() : fail(problem)),
    reportFailure: fail,
  });
  try {
    directory.start();
    await directory.read.whenSynced();
    const coldMs = performance.now() - startMs;
    if (directory.read.list('MeshEndpoints').length !== FILES) throw new Error('not all files were read');
    const changes: number[] = [];
    for (let at = 0; at < CHANGES; at += 1) changes.push(await changeMs(directory, folder, at));
    return [
      { name: `a directory of ${FILES} files, cold`, value: coldMs, unit: 'ms', aim: 3_000 },
      { name: 'one changed file to its key, median', value: median(changes), unit: 'ms', aim: 50 },
      {
        name: `one changed file to its key, slowest of ${CHANGES}`,
        value: Math.max(...changes),
        unit: 'ms',
        aim: 50,
      },
      {
        name: `changes reported when ${FILES - CHANGES} files are saved as they were`,
        value: await idleChanges(directory, folder, seen.promise),
        unit: '',
        aim: 0,
      },
    ];
  } finally {
    await directory.close();
    rmSync(root, { recursive: true });
  }
}

/** A promise and its resolve function. */
function signal(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>(given => (resolve = given));
  return { promise, resolve };
}

function writeObject(folder: string, index: number, revision: number): void {
  const file = join(folder, `service-${index}.yaml`);
  const { managedFields: _, ...metadata } = manyEndpoints(index, revision)['metadata'] as Record<
    string,
    unknown
  >;
  writeFileSync(`${file}.new`, stringify({ ...manyEndpoints(index, revision), metadata }));
  renameSync(`${file}.new`, file);
}

async function changeMs({ read }: Directory, folder: string, at: number): Promise<number> {
  const key = `MeshEndpoints/team-${at % 50}/service-${at}`;
  const seen = new Promise<number>(resolve => {
    const stop = read.subscribe(change => {
      if (change.key !== key) return;
      stop();
      resolve(performance.now());
    });
  });
  const startMs = performance.now();
  writeObject(folder, at, 1);
  return (await seen) - startMs;
}

async function idleChanges({ read }: Directory, folder: string, brokenSeen: Promise<void>): Promise<number> {
  let changes = 0;
  read.subscribe(() => (changes += 1));
  for (let index = CHANGES; index < FILES; index += 1) writeObject(folder, index, 0);
  // A file that is not YAML is reported last, so that all others have been read when it is.
  writeFileSync(join(folder, BROKEN), '{');
  await brokenSeen;
  return changes;
}
