import { KubeError } from '../../../src/kubernetes/transport/transport.ts';
import type { KubeRequest, KubeTransport } from '../../../src/kubernetes/transport/transport.ts';

/** A pod as an API server stores it. */
type Pod = {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
};

type Event = { readonly type: string; readonly revision: number; readonly object: Pod };

/** An API server in memory that serves the pods of each namespace, by labels; it may refuse a namespace. */
export class PodServer implements KubeTransport {
  readonly requests: KubeRequest[] = [];
  readonly #pods = new Map<string, Pod>();
  readonly #refused = new Set<string>();
  #revision = 1000;
  readonly #events: Event[] = [];
  readonly #wake: (() => void)[] = [];

  /** Adds or changes a pod. */
  put(pod: Pod): void {
    const key = keyOf(pod);
    this.#send(this.#pods.has(key) ? 'MODIFIED' : 'ADDED', pod);
    this.#pods.set(key, pod);
  }

  remove(pod: Pod): void {
    this.#pods.delete(keyOf(pod));
    this.#send('DELETED', pod);
  }

  /** Refuses lists and watches of a namespace, and ends its watches. */
  refuse(namespace: string): void {
    this.#refused.add(namespace);
    this.#wakeAll();
  }

  permit(namespace: string): void {
    this.#refused.delete(namespace);
  }

  /** How many lists of a namespace were requested. */
  listsOf(namespace: string): number {
    return this.requests.filter(request => request.verb === 'list' && placeOf(request) === namespace).length;
  }

  send(request: KubeRequest): Promise<unknown> {
    this.requests.push(request);
    if (request.verb !== 'list')
      return Promise.resolve({ kind: 'APIResourceList', resources: [{ name: 'pods' }] });
    if (this.#isRefused(request)) return Promise.reject(new KubeError('Forbidden', 'pods is forbidden'));
    const items = [...this.#pods.values()].filter(pod => isSelected(pod, request));
    const metadata = { resourceVersion: String(this.#revision) };
    return Promise.resolve({ kind: 'PodList', apiVersion: 'v1', metadata, items });
  }

  stream(request: KubeRequest): Promise<AsyncIterable<unknown>> {
    this.requests.push(request);
    if (this.#isRefused(request)) return Promise.reject(new KubeError('Forbidden', 'pods is forbidden'));
    return Promise.resolve(this.#watch(request, Number(request.query?.['resourceVersion'])));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async *#watch(request: KubeRequest, from: number): AsyncGenerator {
    const { signal } = request;
    signal?.addEventListener('abort', () => this.#wakeAll());
    let at = this.#events.filter(({ revision }) => revision <= from).length;
    while (signal?.aborted !== true && !this.#isRefused(request)) {
      const event = this.#events[at];
      if (!event) {
        await new Promise<void>(resolve => this.#wake.push(resolve));
        continue;
      }
      at++;
      const { type, revision, object } = event;
      const metadata = { ...object.metadata, resourceVersion: String(revision) };
      if (isSelected(object, request)) yield { type, object: { ...object, metadata } };
    }
  }

  #send(type: string, object: Pod): void {
    this.#events.push({ type, revision: ++this.#revision, object });
    this.#wakeAll();
  }

  #wakeAll(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  #isRefused(request: KubeRequest): boolean {
    return this.#refused.has(placeOf(request));
  }
}

function keyOf({ metadata: { namespace, name } }: Pod): string {
  return `${namespace}/${name}`;
}

function placeOf({ path }: KubeRequest): string {
  return /^\/api\/v1\/namespaces\/([^/]+)\/pods$/.exec(path)?.[1] ?? '';
}

function isSelected({ metadata: { namespace, labels } }: Pod, request: KubeRequest): boolean {
  const pairs = (request.query?.['labelSelector'] ?? '').split(',').filter(Boolean);
  return (
    namespace === placeOf(request) &&
    pairs.every(pair => {
      const [name = '', value] = pair.split('=');
      return labels[name] === value;
    })
  );
}
