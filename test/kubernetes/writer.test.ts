import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../src/api/generated/types.ts';
import { createStoreUpdates } from '../../src/kubernetes/reflector/store-updates.ts';
import { KubeError } from '../../src/kubernetes/transport/transport.ts';
import type { Fence } from '../../src/kubernetes/write/fenced.ts';
import type { KubeErrorReason, KubeRequest } from '../../src/kubernetes/transport/transport.ts';
import { createWriter } from '../../src/kubernetes/write/writer.ts';
import { ResourceStore } from '../../src/store/store.ts';
import { readMeshEndpoints } from '../support/store/resources.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** The responses to one request after the other; the last is repeated. */
type Answers = readonly unknown[];

const web = readMeshEndpoints('default/web', {}, { uid: 'a', resourceVersion: '1' });
const status = { observedGeneration: 1 };
const ref = { kind: 'MeshEndpoints', namespace: 'default', name: 'web' } as const;

function begin(answers: Answers, fence?: Fence) {
  const clock = new VirtualClock();
  const store = new ResourceStore([], rethrow);
  const updates = createStoreUpdates(['MeshEndpoints'], { store, reportUndecodable: () => undefined });
  store.put(web);
  const requests: KubeRequest[] = [];
  const send = async (request: KubeRequest): Promise<unknown> => {
    const answer = answers[Math.min(requests.push(request), answers.length) - 1];
    await Promise.resolve();
    if (answer instanceof Error) throw answer;
    if (answer === NEVER) await untilAborted(request);
    return answer;
  };
  const ports = { transport: { send }, read: store, updates, clock, random: () => 0 };
  const write = createWriter({ ...ports, ...(fence ? { fence } : {}) });
  return { write, store, clock, requests };
}

/** Gets no response, and fails when it is aborted. */
const NEVER = 'never';

function untilAborted({ signal }: KubeRequest): Promise<never> {
  return new Promise((_resolve, reject) =>
    signal?.addEventListener('abort', () => reject(new KubeError('Aborted', 'aborted'))),
  );
}

function rethrow(failure: unknown): never {
  throw failure as Error;
}

function refused(
  reason: KubeErrorReason,
  code?: number,
  retryAfterMs?: number,
  message = 'no more',
): KubeError {
  return new KubeError(reason, message, {
    ...(code === undefined ? {} : { status: code }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** A response with another version. */
function answered(version: string, fields: object = {}, metadata: object = {}): object {
  return { ...web, ...fields, metadata: { ...web.metadata, resourceVersion: version, ...metadata } };
}

/** Awaits a promise while the clock advances. */
async function over(clock: VirtualClock, written: Promise<void>): Promise<string> {
  let outcome = 'waits';
  void written.then(
    () => (outcome = 'done'),
    (failure: unknown) => (outcome = failure instanceof Error ? `${failure.name}: ${failure.message}` : ''),
  );
  await clock.advance(120_000);
  return outcome;
}

describe('a busy server', () => {
  it.each([
    ['429', refused('Busy', 429, 3000), 3000],
    ['503 with Retry-After', refused('Failed', 503, 2000), 2000],
  ])('is retried after %s', async (_what, busy, retryAfterMs) => {
    const { write, clock, requests, store } = begin([busy, answered('2', { status })]);
    const written = write.replaceStatus(web, status);
    await clock.advance(retryAfterMs - 1);
    expect(requests).toHaveLength(1);
    await clock.advance(1);
    await written;
    expect(requests).toHaveLength(2);
    expect(store.get(ref)?.status).toEqual(status);
  });

  it('is not retried after leadership was lost, even if it is regained', async () => {
    const terms = [new AbortController(), new AbortController()];
    const fence = {
      signal: () => terms.find(({ signal }) => !signal.aborted)?.signal ?? AbortSignal.abort(),
    };
    const { write, clock, requests } = begin([refused('Busy', 429, 3000), answered('2', { status })], fence);
    const written = write.replaceStatus(web, status);
    await clock.advance(1000);
    terms[0]?.abort();
    await expect(written).rejects.toMatchObject(notLeading);
    expect([requests.length, clock.timers]).toEqual([1, 0]);
    await write.replaceStatus(web, status);
    expect(requests).toHaveLength(2);
  });

  it('is retried three times at most', async () => {
    const { write, clock, requests } = begin([refused('Busy', 429)]);
    const outcome = await over(clock, write.replaceStatus(web, status));
    expect(outcome).toBe('ResourceError: MeshEndpoints default/web: writing status failed: no more');
    expect(requests).toHaveLength(4);
    expect(clock.timers).toBe(0);
  });

  it('cannot delay a retry by more than 10 s', async () => {
    const { write, clock, requests } = begin([refused('Busy', 429, 3_600_000)]);
    expect(await over(clock, write.remove(ref))).toContain('delete failed');
    expect(requests).toHaveLength(4);
  });
});

const notLeading = {
  name: 'ResourceError',
  reason: 'Unavailable',
  message: expect.stringMatching(/is not the leader/) as string,
};

type Write = ReturnType<typeof begin>['write'];

const writes: Readonly<Record<string, (write: Write) => Promise<void>>> = {
  replaceStatus: write => write.replaceStatus(web, status),
  addFinalizer: write => write.addFinalizer(web, 'example.com/a'),
  removeFinalizer: write => write.removeFinalizer(web, 'example.com/none'),
  apply: write =>
    write.apply({
      apiVersion: web.apiVersion,
      kind: 'MeshEndpoints',
      metadata: { name: 'web', namespace: 'default', labels: { a: 'b' } },
      spec: web.spec,
    }),
  remove: write => write.remove(ref),
};

describe.each(Object.entries(writes))('%s behind a fence', (_name, act) => {
  it('is refused, and nothing is sent, where the fence does not hold', async () => {
    const { write, requests } = begin([answered('2')], { signal: () => AbortSignal.abort() });
    await expect(act(write)).rejects.toMatchObject(notLeading);
    expect(requests).toEqual([]);
  });
});

describe.each(Object.entries(writes).filter(([name]) => name !== 'removeFinalizer'))(
  '%s behind a fence that is lost',
  (_name, act) => {
    it('fails at once, also while its request is open', async () => {
      const abort = new AbortController();
      const { write, requests, clock } = begin([NEVER], { signal: () => abort.signal });
      const written = act(write);
      await clock.settle();
      abort.abort();
      await expect(written).rejects.toMatchObject(notLeading);
      expect(requests).toHaveLength(1);
    });
  },
);

describe('a write that fails', () => {
  const reasons: readonly (readonly [KubeErrorReason, number | undefined, string])[] = [
    ['Unauthorized', 401, 'Unavailable'],
    ['Forbidden', 403, 'Refused'],
    ['NotFound', 404, 'Gone'],
    ['Expired', 410, 'Unavailable'],
    ['Invalid', 422, 'Refused'],
    ['Failed', 500, 'Unavailable'],
    ['Failed', 503, 'Unavailable'],
    ['Unreachable', undefined, 'Unavailable'],
    ['Malformed', 200, 'Unavailable'],
    ['Aborted', undefined, 'Unavailable'],
  ];

  it.each(reasons)('maps %s to a ResourceError: %s, %s', async (reason, code, means) => {
    const { write } = begin([refused(reason, code)]);
    await expect(write.replaceStatus(web, status)).rejects.toMatchObject({
      name: 'ResourceError',
      reason: means,
    });
  });

  it('is not retried where it may have taken effect', async () => {
    const { write, requests } = begin([refused('Unreachable'), answered('2')]);
    await expect(write.addFinalizer(web, 'example.com/a')).rejects.toMatchObject({ reason: 'Unavailable' });
    expect(requests).toHaveLength(1);
  });

  it.each([
    ['a status', (write: ReturnType<typeof begin>['write']) => write.replaceStatus(web, status)],
    ['a finalizer', (write: ReturnType<typeof begin>['write']) => write.addFinalizer(web, 'example.com/a')],
    ['a deletion', (write: ReturnType<typeof begin>['write']) => write.remove(ref)],
  ])('of %s gives up after repeated conflicts', async (_what, act) => {
    let turn = 0;
    const answers = Array.from({ length: 100 }, () =>
      turn++ % 2 === 0 ? refused('Conflict', 409) : answered(`${turn + 1}`),
    );
    const { write, requests } = begin(answers);
    await expect(act(write)).rejects.toMatchObject({ reason: 'Unavailable' });
    await expect(act(write)).rejects.toThrow('is changed by others continuously');
    expect(requests.length).toBeLessThanOrEqual(32);
  });
});

describe('the response to a write', () => {
  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'fine'],
    ['a list', [1]],
    ['no metadata', { kind: 'MeshEndpoints' }],
    ['metadata of another form', { kind: 'MeshEndpoints', metadata: 'mine' }],
    ['finalizers of another form', answered('9', {}, { finalizers: { a: 1 }, deletionTimestamp: 'now' })],
    ['an object of another kind', { kind: 'Status', metadata: { name: 'web', resourceVersion: '9' } }],
  ])('that is %s leaves the store unchanged', async (_what, answer) => {
    const { write, store, requests } = begin([answer]);
    await write.replaceStatus(web, status);
    await write.addFinalizer(web, 'example.com/a');
    expect(store.get(ref)).toMatchObject({ metadata: { uid: 'a' }, spec: web.spec });
    expect(requests).toHaveLength(2);
  });

  it('does not replace a newer object', async () => {
    const { write, store, requests } = begin([answered('2', { status }), answered('4', { status })]);
    store.put(answered('3', { status: { observedGeneration: 7 } }) as Kinds['MeshEndpoints']);
    await write.replaceStatus(web, status);
    expect(store.get(ref)?.status).toEqual({ observedGeneration: 7 });
    await write.replaceStatus(web, status);
    expect(requests).toHaveLength(2);
    expect(store.get(ref)?.status).toEqual(status);
  });

  it('to the removal of the last finalizer does not store the deleted object', async () => {
    const dying = { deletionTimestamp: '2026-01-31T12:00:00Z' };
    const { write, store } = begin([answered('3', {}, dying)]);
    store.put(answered('2', {}, { ...dying, finalizers: ['example.com/a'] }) as Kinds['MeshEndpoints']);
    const written = write.removeFinalizer(web, 'example.com/a');
    store.remove(ref);
    await written;
    expect(store.get(ref)).toBeUndefined();
  });
});

describe('a request', () => {
  it('has the field manager and, for a status, the identity and version of its object alone', async () => {
    const { write, requests } = begin([answered('2', { status })]);
    await write.replaceStatus(web, status);
    expect(requests).toEqual([
      {
        verb: 'apply',
        path: '/apis/mesh-gateway.dev/v1alpha1/namespaces/default/meshendpoints/web/status',
        query: { fieldManager: 'mesh-gateway', force: 'true' },
        body: {
          type: 'application/apply-patch+yaml',
          value: {
            apiVersion: web.apiVersion,
            kind: 'MeshEndpoints',
            metadata: { name: 'web', namespace: 'default', uid: 'a', resourceVersion: '1' },
            status,
          },
        },
      },
    ]);
  });

  it('is not sent for an object whose name cannot be in a path', async () => {
    const { write, requests } = begin([refused('NotFound', 404)]);
    await write.remove({ ...ref, name: '../../secrets/a?x' });
    expect(requests.map(({ path }) => path)).toEqual([
      '/apis/mesh-gateway.dev/v1alpha1/namespaces/default/meshendpoints/..%2F..%2Fsecrets%2Fa%3Fx',
    ]);
  });
});
