import { afterEach, describe, expect, it } from 'vitest';
import { createStoreUpdates } from '../../src/kubernetes/reflector/store-updates.ts';
import type { ResourceKind } from '../../src/api/key.ts';
import { collectionOf } from '../../src/kubernetes/served-kinds.ts';
import { KubeError } from '../../src/kubernetes/transport/transport.ts';
import { Reflector } from '../../src/kubernetes/reflector/reflector.ts';
import { DEFAULT_TIMING } from '../../src/kubernetes/reflector/state.ts';
import type { KubeRequest, KubeTransport } from '../../src/kubernetes/transport/transport.ts';
import { ResourceStore } from '../../src/store/store.ts';
import { named } from '../support/declared.ts';
import { meshEndpoints } from '../support/objects.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const LIST = { kind: 'MeshEndpointsList', metadata: { resourceVersion: '7' }, items: [] };
const BOOKMARK = { type: 'BOOKMARK', object: { metadata: { resourceVersion: '8' } } };

/** Has an empty list and a scripted watch. */
class Server implements KubeTransport {
  readonly requests: KubeRequest[] = [];
  lines: () => AsyncIterable<unknown> = () => silence();

  send(request: KubeRequest): Promise<unknown> {
    this.requests.push(request);
    return Promise.resolve(LIST);
  }

  stream(request: KubeRequest): Promise<AsyncIterable<unknown>> {
    this.requests.push(request);
    return Promise.resolve(this.lines());
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  get verbs(): string {
    return this.requests.map(({ verb }) => verb).join(' ');
  }

  get underWay(): number {
    return this.requests.filter(({ verb, signal }) => verb === 'watch' && signal?.aborted === false).length;
  }
}

/** A silent connection. */
async function* silence(...first: readonly unknown[]): AsyncGenerator {
  yield* first;
  await new Promise(() => undefined);
}

async function* lines(...all: readonly unknown[]): AsyncGenerator {
  yield* all;
  await Promise.resolve();
}

const running: Reflector[] = [];
afterEach(async () => {
  for (const reflector of running.splice(0)) await reflector.close();
});

/** Each reading of the clock is 10 ms later, so that every yield waits for the next settling. */
class HurriedClock extends VirtualClock {
  #now = 0;
  #isFirst = true;

  override now(): number {
    return (this.#now += 10);
  }

  override async settle(): Promise<void> {
    if (!this.#isFirst) return super.settle();
    this.#isFirst = false;
    await new Promise(setImmediate);
  }
}

type Started = { readonly clock?: VirtualClock; readonly kind?: ResourceKind; readonly namespace?: string };

async function started(
  server: KubeTransport,
  { clock = new VirtualClock(), kind = 'MeshEndpoints', namespace = 'default' }: Started = {},
) {
  const store = new ResourceStore([], () => undefined);
  const broken: unknown[] = [];
  const arrivals = createStoreUpdates([kind], { store, reportUndecodable: () => undefined });
  const reflector = new Reflector({
    collection: collectionOf(kind, namespace),
    transport: server,
    clock,
    timing: DEFAULT_TIMING,
    random: () => 0.5,
    updates: arrivals.of(kind),
    observer: { moved: () => undefined, failed: error => broken.push(error) },
    onSynced: () => store.markSynced(),
  });
  running.push(reflector);
  reflector.start();
  await clock.settle();
  return { clock, reflector, store, broken };
}

describe('a list', () => {
  it('that is too large is requested in smaller pages', async () => {
    const server = new Server();
    server.send = request => {
      server.requests.push(request);
      const isTooLarge = Number(request.query?.['limit']) > 30;
      return isTooLarge
        ? Promise.reject(new KubeError('Malformed', 'the answer has more than 67108864 bytes'))
        : Promise.resolve(LIST);
    };
    const { clock, store } = await started(server);
    await clock.advance(5000);
    expect(store.isSynced()).toBe(true);
    const limits = server.requests.map(({ query }) => query?.['limit']);
    expect(limits).toEqual(['100', '50', '25', undefined]);
  });
});

describe('Pods', () => {
  it('are read in one namespace, by the label of mesh pods', async () => {
    const server = new Server();
    await started(server, { kind: 'Pod', namespace: 'mesh-system' });
    expect(server.verbs).toBe('list watch');
    for (const { path, query } of server.requests) {
      expect(path).toBe('/api/v1/namespaces/mesh-system/pods');
      expect(query?.['labelSelector']).toBe('app.kubernetes.io/name=mesh-endpoint');
    }
  });
});

describe('a watch', () => {
  it('is requested with bookmarks, from the list, for five to ten minutes', async () => {
    const server = new Server();
    await started(server);
    expect(server.requests[1]?.query).toEqual({
      watch: 'true',
      resourceVersion: '7',
      allowWatchBookmarks: 'true',
      timeoutSeconds: '450',
    });
  });

  it('without a line for 90 s is replaced by another, and then by a list', async () => {
    const server = new Server();
    const { clock } = await started(server);
    await clock.advance(89_999);
    expect(server.verbs).toBe('list watch');
    await clock.advance(1);
    expect([server.verbs, server.underWay]).toEqual(['list watch watch', 1]);
    await clock.advance(90_000);
    expect([server.verbs, server.underWay]).toEqual(['list watch watch list watch', 1]);
  });

  it('times out 90 s after its last line', async () => {
    const server = new Server();
    server.lines = () => silence(BOOKMARK);
    const { clock } = await started(server);
    await clock.advance(90_000);
    expect(server.verbs).toBe('list watch watch');
    expect(server.requests[2]?.query?.['resourceVersion']).toBe('8');
    await clock.advance(600_000);
    expect(server.verbs).not.toContain('list watch watch list');
  });

  it('that is not opened within 30 s fails', async () => {
    const server = new Server();
    server.stream = request => {
      server.requests.push(request);
      return new Promise(() => undefined);
    };
    const { clock, reflector } = await started(server);
    await clock.advance(30_000);
    expect(reflector.state).toMatchObject({ is: 'waiting', failure: { reason: 'Unreachable' } });
    await clock.advance(100);
    expect([server.verbs, server.underWay]).toEqual(['list watch watch', 1]);
  });

  it('that ends at once is requested with backoff', async () => {
    const server = new Server();
    server.lines = () => lines();
    const { clock } = await started(server);
    await clock.advance(3_600_000);
    expect(server.requests.length).toBeGreaterThan(200);
    expect(server.requests.length).toBeLessThan(400);
  });
});

describe('a reflector', () => {
  it.each<[string, () => Promise<never>]>([
    ['rejects with anything', () => Promise.reject(new Error('no'))],
    ['rejects with an error of another class', () => Promise.reject(new TypeError('no'))],
    ['is closed', () => Promise.reject(new KubeError('Aborted', 'closed'))],
    [
      'throws',
      () => {
        throw new Error('no');
      },
    ],
  ])('continues with a transport that %s', async (_how, fail) => {
    const server = new Server();
    let isBroken = true;
    const transport: KubeTransport = {
      send: request => (isBroken ? fail() : server.send(request)),
      stream: request => (isBroken ? fail() : server.stream(request)),
      close: () => Promise.resolve(),
    };
    const { clock, reflector, store } = await started(transport);
    await clock.advance(60_000);
    expect(reflector.state.is).toBe('waiting');
    isBroken = false;
    await clock.advance(30_000);
    expect([reflector.state.is, store.isSynced()]).toEqual(['watching', true]);
  });

  it('lists again when an object could not be stored', async () => {
    const server = new Server();
    server.lines = () => silence();
    const { clock, store, broken, reflector } = await started(server);
    const full = new Error('the store is full');
    const put = store.put.bind(store);
    store.put = () => {
      throw full;
    };
    const metadata = { uid: 'one', resourceVersion: '8' };
    server.lines = () => silence({ type: 'ADDED', object: named(meshEndpoints(), 'default/web', metadata) });
    await clock.advance(90_000);
    expect(server.verbs).toBe('list watch watch list watch');
    expect(broken).toEqual([full, full]);
    store.put = put;
    await clock.advance(1_000);
    expect([store.list('MeshEndpoints').length, reflector.state.is]).toEqual([1, 'watching']);
  });

  it('aborts its list when it is closed', async () => {
    const server = new Server();
    server.send = request => {
      server.requests.push(request);
      return new Promise(() => undefined);
    };
    const { reflector } = await started(server);
    await reflector.close();
    expect(server.requests.map(({ signal }) => signal?.aborted)).toEqual([true]);
  });

  it('yields between two objects, and stores no more of a page when it is closed then', async () => {
    const server = new Server();
    const items = ['a', 'b', 'c'].map(name => named(meshEndpoints(), `default/${name}`, { uid: name }));
    server.send = () => Promise.resolve({ ...LIST, items });
    const { clock, reflector, store } = await started(server, { clock: new HurriedClock() });
    const closed = reflector.close();
    await clock.settle();
    await closed;
    expect([store.list('MeshEndpoints').length, store.isSynced()]).toEqual([1, false]);
  });

  it('does nothing after it is closed, and can be closed again', async () => {
    const server = new Server();
    const { clock, reflector } = await started(server);
    await Promise.all([reflector.close(), reflector.close()]);
    expect([clock.timers, server.underWay, reflector.state.is]).toEqual([0, 0, 'closed']);
    reflector.start();
    await clock.advance(600_000);
    expect(server.verbs).toBe('list watch');
  });
});
