import type { Ref, ResourceKind } from '../../../src/api/key.ts';
import type { KubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject, KubeRef } from '../../../lab/kube/object.ts';
import { createStoreUpdates } from '../../../src/kubernetes/reflector/store-updates.ts';
import { pathOf, SERVED } from '../../../src/kubernetes/served-kinds.ts';
import type { KubeRequest, KubeTransport } from '../../../src/kubernetes/transport/transport.ts';
import { createWriter } from '../../../src/kubernetes/write/writer.ts';
import type { WriteResources } from '../../../src/store/resources.ts';
import { ResourceStore } from '../../../src/store/store.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { clientTransport } from './client-transport.ts';

/** A process that writes, whose store has only what `learn` read and what responses returned. */
export type Writing = {
  readonly write: WriteResources;
  readonly store: ResourceStore;
  /** Its requests, in order. */
  readonly requests: readonly KubeRequest[];
  /** Updates the store from the server, as a watch would. */
  readonly sync: (ref: Ref) => Promise<void>;
};

/** What happens before a request; the request is sent when it has resolved. */
export type BeforeRequest = (request: KubeRequest) => Promise<void>;

/** The kinds that are written in tests. */
const KINDS: readonly ResourceKind[] = ['MeshBinding', 'MeshEndpoints', 'MeshTailnet', 'HTTPRoute'];

/** Creates a writer; `beside` runs before each request. */
export function beginWriting(
  client: KubeClient,
  beforeRequest?: BeforeRequest,
  transport: Pick<KubeTransport, 'send'> = clientTransport(client),
): Writing {
  const requests: KubeRequest[] = [];
  const store = new ResourceStore([], rethrow);
  const updates = createStoreUpdates(KINDS, { store, reportUndecodable: rethrow });
  const send = async (request: KubeRequest) => {
    requests.push(request);
    await beforeRequest?.(request);
    return await transport.send(request);
  };
  return {
    write: createWriter({ transport: { send }, read: store, updates, clock: systemClock, random: () => 0 }),
    store,
    requests,
    sync: async ref => {
      const object = await objectAt(client, ref);
      if (object) updates.of(ref.kind).addListed(object, false);
      else store.remove(ref);
    },
  };
}

/** An object as the server stores it, with managed fields. */
export async function objectAt(client: KubeClient, ref: Ref): Promise<KubeObject | undefined> {
  const { status, body } = await client.request('GET', pathOf(ref, SERVED[ref.kind].versions[0] ?? ''));
  return status === 404 ? undefined : (body as KubeObject);
}

/** The reference to an object as the client of the lab takes it. */
export function kubeRef({ kind, namespace, name }: Ref): KubeRef {
  const { group, versions } = SERVED[kind];
  return { apiVersion: `${group}/${versions[0] ?? ''}`, kind, namespace, name };
}

/** Changes an object as users or other programs do. */
export async function edit(
  client: KubeClient,
  ref: Ref,
  change: object,
  { manager = 'kubectl-edit', subresource = '' } = {},
): Promise<void> {
  const path = `${await client.pathOf(kubeRef(ref))}${subresource}?fieldManager=${manager}`;
  const contentType = 'application/merge-patch+json';
  const { status, body } = await client.request('PATCH', path, change, { contentType });
  if (status >= 300) throw new Error(JSON.stringify(body));
}

/** Calls a function before the first request of a verb. */
export function once(verb: KubeRequest['verb'], act: () => Promise<unknown>): BeforeRequest {
  let isDone = false;
  return async request => {
    if (isDone || request.verb !== verb) return;
    isDone = true;
    await act();
  };
}

/** The verbs of the requests, in order. */
export function verbs({ requests }: Pick<Writing, 'requests'>): readonly string[] {
  return requests.map(({ verb }) => verb);
}

function rethrow(failure: unknown): never {
  throw failure instanceof Error ? failure : new Error(JSON.stringify(failure));
}
