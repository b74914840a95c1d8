import { describe, expect, it } from 'vitest';
import { KubeError } from '../../src/kubernetes/transport/transport.ts';
import { kubernetesLease } from '../../src/kubernetes/lease.ts';
import type { KubeRequest, KubeTransport } from '../../src/kubernetes/transport/transport.ts';

const never = new AbortController().signal;

/** A transport with a given response. */
function transportOf(send: (request: KubeRequest) => Promise<unknown>): KubeTransport {
  return {
    send,
    stream: () => Promise.reject(new Error('nothing is streamed here')),
    close: () => Promise.resolve(),
  };
}

describe('a Lease in a response', () => {
  const read = (answer: unknown) =>
    kubernetesLease({
      transport: transportOf(() => Promise.resolve(answer)),
      namespace: 'a',
      name: 'b',
      date: () => new Date(0),
    }).read(never);
  const metadata = { resourceVersion: '7' };
  const nothing = { holder: '', durationMs: 0, transitions: 0, version: '7' };

  it.each<readonly [string, unknown]>([
    ['has no spec', { metadata }],
    ['has a spec that is none', { metadata, spec: 'text' }],
    ['has a spec of nothing', { metadata, spec: null }],
    [
      'has fields of other types',
      { metadata, spec: { holderIdentity: 1, leaseDurationSeconds: '9', leaseTransitions: {} } },
    ],
    ['counts what cannot be', { metadata, spec: { leaseDurationSeconds: -1, leaseTransitions: 0.5 } }],
    ['counts more than can be', { metadata, spec: { leaseDurationSeconds: 1e300, leaseTransitions: NaN } }],
  ])('has no holder where it %s', async (_what, answer) => {
    expect(await read(answer)).toEqual(nothing);
  });

  it.each([undefined, null, 'text', [], {}, { metadata: null }, { metadata: { resourceVersion: 7 } }])(
    'is none where the answer is %j',
    async answer => {
      await expect(read(answer)).rejects.toMatchObject({ name: 'ResourceError', reason: 'Unavailable' });
    },
  );

  it.each([
    ['Forbidden', 403, 'Refused'],
    ['Unauthorized', 401, 'Refused'],
    ['Invalid', 422, 'Refused'],
    ['Busy', 429, 'Unavailable'],
    ['Failed', 500, 'Unavailable'],
    ['Unreachable', undefined, 'Unavailable'],
    ['Malformed', 200, 'Unavailable'],
  ] as const)('fails where the response is %s', async (kubeReason, status, reason) => {
    const error = new KubeError(kubeReason, 'no', status === undefined ? {} : { status });
    const transport = transportOf(() => Promise.reject(error));
    const lease = kubernetesLease({ transport, namespace: 'a', name: 'b', date: () => new Date(0) });
    const hold = { holder: 'x', durationMs: 1000, transitions: 1 };
    await expect(lease.read(never)).rejects.toMatchObject({ reason, cause: error });
    await expect(lease.write(hold, undefined, never)).rejects.toMatchObject({ reason });
    await expect(lease.write(hold, { ...hold, version: '1' }, never)).rejects.toMatchObject({ reason });
  });
});
