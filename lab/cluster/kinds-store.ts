import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { applyAll } from '../kube/apply.ts';
import { kubeClient } from '../kube/client.ts';
import { readManifests } from '../kube/manifests.ts';
import type { KubeObject } from '../kube/object.ts';
import type { KubeAccess } from '../kube/transport.ts';
import { cachedFolder } from '../parts/cached-folder.ts';
import { killProcess, stopProcess, withLogTail } from '../process/process.ts';
import type { ProcessNotes } from '../process/state-folder.ts';
import type { Starter } from '../process/starter.ts';
import type { Credentials } from './certificates.ts';
import { etcdFolder, startApiServer, startEtcd, waitForApiServer } from './control-plane.ts';
import type { ControlPlanePlace } from './control-plane.ts';
import { renderEnvoyGateway } from './envoy-gateway.ts';
import { fingerprint } from './fingerprint.ts';

const run = promisify(execFile);

/** An API server that is about to start, with an empty store. */
export type EmptyApiServer = {
  readonly notes: ProcessNotes;
  readonly starter: Starter;
  readonly place: ControlPlanePlace;
  readonly credentials: Credentials;
  readonly access: KubeAccess;
};

/**
 * Copies a store that has our kinds and those of Gateway API into the folder of an API server, whose etcd starts with it.
 * The store is made once for each version of the programs, of the CRDs and of this code, which takes as long as three starts.
 */
export async function copyKindsStore(server: EmptyApiServer, cache: string): Promise<void> {
  const { pathOf } = server.starter;
  const programs = (['etcd', 'kube-apiserver', 'helm', 'gateway-helm'] as const).map(pathOf);
  const sources = [import.meta.dirname, join(import.meta.dirname, '..', 'kube'), CRDS];
  const store = await cachedFolder({
    cache,
    name: 'kinds-store',
    key: fingerprint(programs, sources, /\.(ts|yaml)$/),
    make: folder => makeStore(server, folder),
    now: new Date(),
  });
  await copyFolder(join(store, 'etcd'), etcdFolder(server.starter));
}

const CRDS = join(import.meta.dirname, '..', '..', 'dist', 'crds');

/** Runs the API server until it serves all kinds, and moves its store into a folder. */
async function makeStore({ notes, starter, place, credentials, access }: EmptyApiServer, folder: string) {
  const kinds = await gatewayKinds(starter);
  const etcd = startEtcd(starter, place);
  const apiServer = startApiServer(starter, credentials, place);
  const client = kubeClient(access);
  await withLogTail(apiServer, waitForApiServer(client));
  await applyAll(client, [...kinds, ...readManifests(CRDS)]);
  await killProcess(apiServer);
  await stopProcess(etcd);
  for (const record of [apiServer, etcd]) notes.removeProcess(record);
  await copyFolder(etcdFolder(starter), join(folder, 'etcd'));
  rmSync(etcdFolder(starter), { recursive: true });
}

async function gatewayKinds({ folder, pathOf }: Starter): Promise<readonly KubeObject[]> {
  const rendered = await renderEnvoyGateway(folder, pathOf);
  return rendered.filter(
    ({ kind, metadata: { name = '' } }) =>
      kind === 'CustomResourceDefinition' && name.endsWith('.gateway.networking.k8s.io'),
  );
}

/** Without the zeros that etcd reserves for its log, which are nine tenths of the store. */
async function copyFolder(from: string, to: string): Promise<void> {
  await run('cp', ['--recursive', '--sparse=always', from, to]);
}
