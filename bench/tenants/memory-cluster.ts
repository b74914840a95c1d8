import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { controllerIndexes, controllerKinds } from '../../src/controllers/registry.ts';
import { GATEWAY_GROUP } from '../../src/api/objects/gateway-api.ts';
import { isRecord } from '../../src/api/json.ts';
import { keyOf } from '../../src/api/key.ts';
import type { Ref, ResourceKind } from '../../src/api/key.ts';
import type { KubeObject } from '../../lab/kube/object.ts';
import { createStoreUpdates } from '../../src/kubernetes/reflector/store-updates.ts';
import { KubeError } from '../../src/kubernetes/transport/transport.ts';
import type { KubeRequest, KubeTransport } from '../../src/kubernetes/transport/transport.ts';
import { createWriter } from '../../src/kubernetes/write/writer.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { trafficIndexes } from '../../src/store/traffic/resources.ts';
import { ResourceStore } from '../../src/store/store.ts';

/** How long a write takes, on as many connections as the product has. */
const WRITE_MS = 3;
const CONNECTIONS = 4;

/** How many objects are read without a turn of the event loop. */
const PAGE = 100;

/** How long Envoy Gateway takes to report that it has translated a MeshBinding. */
const TRANSLATION_MS = 300;

/** The part of an API server that the operator needs: objects arrive as watch events, and writes take time. */
export class MemoryCluster {
  readonly store = new ResourceStore([...trafficIndexes, ...controllerIndexes], fail);
  /** Counts writes of objects that the operator reads. */
  writes = 0;
  /** The time for what an API server does itself, which makes objects and encodes them, in milliseconds. */
  ownMs = 0;
  readonly #updates = createStoreUpdates(controllerKinds, {
    store: this.store,
    reportUndecodable: ({ ref, faults }) => fail(new Error(`${keyOf(ref)}: ${faults.join('; ')}`)),
  });
  readonly #waiting: (() => void)[] = [];
  #free = CONNECTIONS;
  #version = 1;

  readonly transport: Pick<KubeTransport, 'send'> = { send: request => this.#send(request) };
  readonly write = createWriter({
    transport: this.transport,
    clock: systemClock,
    random: Math.random,
    read: this.store,
    updates: this.#updates,
  });

  /** Reads the initial objects, in the order in which they are given, in pages as from an API server. */
  async sync(objects: Iterable<KubeObject>): Promise<void> {
    let read = 0;
    for (const kind of controllerKinds) this.#updates.of(kind).beginList('1');
    for (const object of objects) {
      // Parsed from text, as objects from outside are.
      const raw = JSON.parse(this.#encoded(object)) as KubeObject;
      this.#updates.of(kindOf(object)).addListed(raw, true);
      if (++read % PAGE === 0) await setImmediate();
    }
    // Each kind has a list of its own.
    for (const kind of controllerKinds) {
      this.#updates.of(kind).endList(String(this.#version), true);
      await setImmediate();
    }
    this.store.markSynced();
  }

  /** Someone applies an object, whose status stays. */
  apply(object: KubeObject): void {
    const { status } = (this.store.get(refTo(object)) ?? {}) as { readonly status?: unknown };
    this.#commit({ ...object, ...(status !== undefined && { status }) });
  }

  #encoded(object: KubeObject): string {
    const startMs = performance.now();
    const text = JSON.stringify(this.#stored(object));
    this.ownMs += performance.now() - startMs;
    return text;
  }

  #stored({ metadata, ...rest }: KubeObject): KubeObject {
    const known = this.store.get(refTo({ metadata, ...rest }));
    const number = String(++this.#version);
    const uid = known?.metadata.uid ?? `00000000-0000-4000-8000-${number.padStart(12, '0')}`;
    const added = { generation: 1, creationTimestamp: '2026-01-31T12:00:00Z', uid };
    return { ...rest, metadata: { ...added, ...metadata, resourceVersion: number } };
  }

  #commit(object: KubeObject): unknown {
    const raw: unknown = JSON.parse(this.#encoded(object));
    this.#updates.of(kindOf(object)).applyWatchEvent(raw, 'put', String(this.#version));
    return raw;
  }

  async #send({ verb, path, body }: KubeRequest): Promise<unknown> {
    if (this.#free === 0) await new Promise<void>(resolve => this.#waiting.push(resolve));
    else this.#free--;
    try {
      await sleep(WRITE_MS);
      if (verb === 'get') throw new KubeError('NotFound', path, { status: 404 });
      const value = body?.value;
      if (verb === 'apply' && isObject(value)) return this.#applied(value, path.endsWith('/status'));
      return value;
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }

  #applied(value: KubeObject, isOfStatus: boolean): unknown {
    if (!controllerKinds.some(kind => kind === value.kind)) return value;
    this.writes++;
    const known = this.store.get(refTo(value)) as unknown as KubeObject | undefined;
    const { resourceVersion } = value.metadata;
    if (resourceVersion !== undefined && resourceVersion !== known?.metadata.resourceVersion)
      throw new KubeError('Conflict', keyOf(refTo(value)), { status: 409 });
    if (isOfStatus && known) return this.#commit({ ...known, status: value['status'] });
    const generation = (known?.metadata.generation ?? 0) + 1;
    const status = known?.['status'];
    const next = { ...value, metadata: { ...value.metadata, generation }, ...(status ? { status } : {}) };
    if (value.kind === 'MeshBinding') this.#translate(refTo(value), generation);
    return this.#commit(next);
  }

  /** Reports the translation of a generation, unless it has a newer one by then. */
  #translate(ref: Ref, generation: number): void {
    setTimeout(() => {
      const binding = this.store.get(ref) as unknown as KubeObject | undefined;
      if (binding?.metadata.generation !== generation) return;
      const condition = {
        type: 'Accepted',
        status: 'True',
        reason: 'Accepted',
        message: 'Policy has been accepted.',
        observedGeneration: generation,
        lastTransitionTime: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
      };
      const ancestorRef = { group: GATEWAY_GROUP, kind: 'Gateway', ...nameOf(ref) };
      const controllerName = 'gateway.envoyproxy.io/gatewayclass-controller';
      this.#commit({
        ...binding,
        status: { ancestors: [{ ancestorRef, controllerName, conditions: [condition] }] },
      });
    }, TRANSLATION_MS);
  }
}

function fail(failure: unknown): never {
  throw failure;
}

function nameOf({ namespace, name }: Ref) {
  return { namespace, name };
}

function kindOf({ kind }: KubeObject): ResourceKind {
  return kind as ResourceKind;
}

function refTo({ kind, metadata: { namespace = '', name = '' } }: KubeObject): Ref {
  return { kind: kind as ResourceKind, namespace, name };
}

function isObject(value: unknown): value is KubeObject {
  return isRecord(value) && isRecord(value['metadata']);
}
