import { renameSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { argv } from 'node:process';
import { API_VERSION } from '../../src/api/generated/kinds.ts';
import { openDirectory } from '../../src/resources/directory.ts';
import type { Directory } from '../../src/resources/directory.ts';

/** What the process says into a file, one line each: what it found when it began, what it is about to do, and what is done. */
export type Said =
  | {
      readonly says: 'found';
      readonly values: Values;
      readonly uids: readonly string[];
      readonly problems: number;
    }
  | { readonly says: 'tries' | 'did'; readonly what: string; readonly value: string };

/** What is kept, by names. */
export type Values = Readonly<Record<string, string>>;

/** The objects of users, each in a file of its own. */
export const NAMES = ['a', 'b', 'c'] as const;

/** The file of an object, with a port. */
export function fileText(name: string, port: number): string {
  const endpoint = {
    name: 'web',
    meshIP: '100.64.0.1',
    meshFQDN: 'web.example.ts.net',
    port,
    protocol: 'HTTP',
  };
  const spec = { tailnet: 'example.ts.net', endpoints: [endpoint] };
  return JSON.stringify({ apiVersion: API_VERSION, kind: 'MeshEndpoints', metadata: { name }, spec });
}

/** What a process wrote into a file stays there when it is killed. */
const SAID = 3;

const say = (said: Said) => writeSync(SAID, `${JSON.stringify(said)}\n`);

/** One byte for each thing that is done, the begin among them, for whoever wants to kill after so many. */
const tick = () => writeSync(1, '.');

/** Large enough that the journal is written anew every few dozen times. */
const PADDING = 'x'.repeat(25_000);

function objectNamed({ read }: Directory, name: string) {
  const object = read.get({ kind: 'MeshEndpoints', namespace: 'default', name });
  if (!object) throw new Error(`${name} is not there`);
  return object;
}

function bindingNamed({ read }: Directory, name: string): string {
  return read.get({ kind: 'MeshBinding', namespace: 'default', name })?.spec.revision ?? 'none';
}

function valuesOf(directory: Directory): Values {
  const values: Record<string, string> = {};
  for (const name of NAMES) {
    const { status, metadata, spec } = objectNamed(directory, name);
    values[`status ${name}`] = String(status?.summary?.total ?? 0);
    values[`finalizers ${name}`] = (metadata.finalizers ?? []).join();
    values[`port ${name}`] = String(spec.endpoints?.[0]?.port);
    values[`binding ${name}`] = bindingNamed(directory, name);
  }
  return values;
}

async function step(what: string, value: string, act: () => Promise<void>): Promise<void> {
  say({ says: 'tries', what, value });
  await act();
  say({ says: 'did', what, value });
  tick();
}

async function writeStatus(directory: Directory, name: string, total: number): Promise<void> {
  const summary = { total, healthy: 0, unhealthy: total, ready: `0/${total}` };
  const times = { lastTransitionTime: '2026-01-01T00:00:00Z', reason: 'A', message: PADDING };
  const status = { summary, conditions: [{ type: 'Ready', status: 'True', ...times } as const] };
  await step(`status ${name}`, String(total), () =>
    directory.write.replaceStatus(objectNamed(directory, name), status),
  );
}

async function changeFinalizers(directory: Directory, name: string, at: number): Promise<void> {
  const object = objectNamed(directory, name);
  const [old = '', ...others] = object.metadata.finalizers ?? [];
  const isFull = others.length > 1;
  const finalizer = `example.com/f${at}`;
  const after = isFull ? others : [...(object.metadata.finalizers ?? []), finalizer];
  await step(`finalizers ${name}`, after.join(), () =>
    isFull ? directory.write.removeFinalizer(object, old) : directory.write.addFinalizer(object, finalizer),
  );
}

async function changeBinding(directory: Directory, name: string, at: number): Promise<void> {
  const revision = String(at).padStart(8, '0');
  const gateway = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'public' };
  const object = {
    apiVersion: API_VERSION,
    kind: 'MeshBinding',
    metadata: { name },
    spec: { targetRefs: [gateway], revision },
  } as const;
  const ref = { kind: 'MeshBinding', namespace: 'default', name } as const;
  if (at % 4 === 0) await step(`binding ${name}`, 'none', () => directory.write.remove(ref));
  else await step(`binding ${name}`, revision, () => directory.write.apply(object));
}

/** The file is there before it is read; what counts is that it is never lost afterwards. */
async function changeFile(directory: Directory, folder: string, name: string, at: number): Promise<void> {
  const port = 1 + (at % 60_000);
  await step(`port ${name}`, String(port), () => {
    writeFileSync(join(folder, `.${name}.tmp`), fileText(name, port));
    renameSync(join(folder, `.${name}.tmp`), join(folder, `${name}.json`));
    return new Promise(resolve => {
      const leave = directory.read.subscribe(() => {
        if (objectNamed(directory, name).spec.endpoints?.[0]?.port !== port) return;
        leave();
        resolve();
      });
    });
  });
}

/** Changes all that can be changed, without an end. */
async function run(folder: string, state: string, first: number): Promise<void> {
  const fail = (failure: unknown) => {
    throw failure;
  };
  const directory = await openDirectory({
    folder,
    state,
    indexes: [],
    report: () => undefined,
    reportFailure: fail,
  });
  directory.start();
  await directory.read.whenSynced();
  const uids = NAMES.map(name => objectNamed(directory, name).metadata.uid ?? '');
  say({ says: 'found', values: valuesOf(directory), uids, problems: directory.problems().length });
  tick();
  const forever = async (change: (at: number) => Promise<void>) => {
    for (let at = first; ; at++) await change(at);
  };
  await Promise.all(
    NAMES.flatMap(name => [
      forever(at => writeStatus(directory, name, at)),
      forever(at => changeFinalizers(directory, name, at)),
      forever(at => changeBinding(directory, name, at)),
      forever(at => changeFile(directory, folder, name, at)),
    ]),
  );
}

const [, program = '', folder, state, first] = argv;
if (program.endsWith('killed-writer.mjs') && folder !== undefined && state !== undefined)
  await run(folder, state, Number(first));
