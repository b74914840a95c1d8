import { KubeError } from '../../../src/kubernetes/transport/transport.ts';
import type { KubeRequest } from '../../../src/kubernetes/transport/transport.ts';

/** An event as the server stores it. */
export type StoredEvent = {
  readonly note: string;
  readonly regarding: { readonly name: string };
  readonly series?: { readonly count: number; readonly lastObservedTime: string };
};

/** How the server answers requests. */
export type ServerBehaviour = 'answers' | 'refuses' | 'is-down' | 'is-busy' | 'hangs';

/** An API server for events, with the behaviour that a test sets. */
export class EventServer {
  behaviour: ServerBehaviour = 'answers';
  /** A namespace whose events it rate limits, as the admission plugin EventRateLimit does. */
  busyNamespace: string | undefined;
  readonly requests: KubeRequest[] = [];
  readonly stored = new Map<string, StoredEvent>();

  send = async (request: KubeRequest): Promise<unknown> => {
    this.requests.push(request);
    await Promise.resolve();
    const isBusy = this.busyNamespace !== undefined && request.path.includes(`/${this.busyNamespace}/`);
    switch (isBusy ? 'is-busy' : this.behaviour) {
      case 'refuses':
        throw new KubeError('Forbidden', 'may not', { status: 403 });
      case 'is-down':
        throw new KubeError('Unreachable', 'no connection');
      case 'hangs':
        return await new Promise((_resolve, reject) => {
          request.signal?.addEventListener('abort', () => reject(new KubeError('Aborted', 'aborted')));
        });
      case 'answers':
        return this.#keep(request);
      case 'is-busy':
        throw new KubeError('Busy', 'later', { status: 429, retryAfterMs: 1000 });
    }
  };

  /** The number of recorded events, counting those of series. */
  get recorded(): number {
    return [...this.stored.values()].reduce((sum, { series }) => sum + (series?.count ?? 1), 0);
  }

  #keep({ verb, path, body }: KubeRequest): unknown {
    const value = body?.value as StoredEvent & { readonly metadata: { readonly name: string } };
    if (verb === 'create') {
      const key = `${path}/${value.metadata.name}`;
      if (this.stored.has(key)) throw new KubeError('Conflict', 'already exists', { status: 409 });
      this.stored.set(key, value);
      return value;
    }
    const old = this.stored.get(path);
    if (!old) throw new KubeError('NotFound', 'not found', { status: 404 });
    this.stored.set(path, { ...old, ...value });
    return this.stored.get(path);
  }
}
