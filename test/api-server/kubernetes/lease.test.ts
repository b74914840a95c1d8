import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubeClient } from '../../../lab/kube/client.ts';
import { kubernetesLease } from '../../../src/kubernetes/lease.ts';
import type { LeaseHold } from '../../../src/store/lease.ts';
import { describeLease } from '../../contract/lease.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';
import { adminTransport } from '../../support/api-server/admin-transport.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';

const admin = kubeClient(sharedApiServer().access);
const transport = adminTransport(sharedApiServer().access);
const never = new AbortController().signal;
const LEASE = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };

let namespace: string;
let count = 0;
beforeAll(async () => {
  namespace = await createNamespace(admin);
});
afterAll(async () => {
  await transport.close();
  await removeNamespace(admin, namespace);
});

function openLease(name: string, date = () => new Date()) {
  return kubernetesLease({ transport, namespace, name, date });
}

/** Merge-patches the Lease, as kubectl edit does. */
async function edit(name: string, change: unknown): Promise<void> {
  const path = await admin.pathOf({ ...LEASE, namespace, name });
  const contentType = 'application/merge-patch+json';
  const { status } = await admin.request('PATCH', path, change, { contentType });
  expect(status).toBe(200);
}

describeLease('a Lease in a cluster', () => {
  const name = `contract-${count++}`;
  const put = ({ holder, durationMs, transitions }: LeaseHold) =>
    edit(name, {
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: durationMs / 1000,
        leaseTransitions: transitions,
      },
    });
  return Promise.resolve({
    lease: openLease(name),
    another: openLease(name),
    author: { put, remove: () => admin.remove({ ...LEASE, namespace, name }) },
    close: () => Promise.resolve(),
  });
});

describe('a Lease that was edited', () => {
  it.each<readonly [string, unknown]>([
    ['has no spec', {}],
    ['has no times', { holderIdentity: 'another' }],
    ['has a name in an odd script', { holderIdentity: 'ünïcödé 🙂 "quoted" \\ \n' }],
    ['has an endless duration', { holderIdentity: 'x', leaseDurationSeconds: 2_147_483_647 }],
    ['has as many transitions as can be', { holderIdentity: 'x', leaseTransitions: 2_147_483_647 }],
    ['was renewed in the far future', { holderIdentity: 'x', renewTime: '2999-01-01T00:00:00.000000Z' }],
  ])('is read and written over where it %s', async (_what, spec) => {
    const name = `edited-${count++}`;
    await admin.create({ ...LEASE, metadata: { namespace, name, labels: { by: 'hand' } }, spec });
    const lease = openLease(name);
    const seen = await lease.read(never);
    const { holderIdentity = '' } = spec as { readonly holderIdentity?: string };
    expect(seen).toMatchObject({ holder: holderIdentity });
    const hold = { holder: 'a', durationMs: 10_000, transitions: (seen?.transitions ?? 0) + 1 };
    expect(await lease.write(hold, seen, never)).toMatchObject({ holder: 'a', durationMs: 10_000 });
    expect(await admin.get({ ...LEASE, namespace, name })).toMatchObject({
      metadata: { labels: { by: 'hand' } },
      spec: { holderIdentity: 'a', leaseDurationSeconds: 10 },
    });
  });

  it('is not written over when only its labels have changed since it was read', async () => {
    const name = `labelled-${count++}`;
    const lease = openLease(name);
    const hold = { holder: 'a', durationMs: 10_000, transitions: 1 };
    const before = await lease.write(hold, undefined, never);
    await edit(name, { metadata: { labels: { some: 'label' } } });
    expect(await lease.write(hold, before, never)).toBeUndefined();
    expect(await lease.read(never)).toMatchObject(hold);
  });

  it('shows when it was acquired and renewed, by the clock of the holder', async () => {
    const name = `timed-${count++}`;
    let time = '2030-01-01T00:00:00.000Z';
    const lease = openLease(name, () => new Date(time));
    const hold = { holder: 'a', durationMs: 10_000, transitions: 1 };
    const first = await lease.write(hold, undefined, never);
    time = '2030-01-01T00:00:02.000Z';
    const second = await lease.write(hold, first, never);
    expect(await admin.get({ ...LEASE, namespace, name })).toMatchObject({
      spec: { acquireTime: '2030-01-01T00:00:00.000000Z', renewTime: '2030-01-01T00:00:02.000000Z' },
    });
    time = '2030-01-01T00:00:04.000Z';
    await lease.write({ ...hold, holder: 'b' }, second, never);
    expect(await admin.get({ ...LEASE, namespace, name })).toMatchObject({
      spec: { acquireTime: '2030-01-01T00:00:04.000000Z', renewTime: '2030-01-01T00:00:04.000000Z' },
    });
  });
});

describe('a Lease that cannot be kept', () => {
  const hold = { holder: 'a', durationMs: 10_000, transitions: 1 };

  it('is Gone when its namespace does not exist', async () => {
    const lease = kubernetesLease({ transport, namespace: 'not-there', name: 'a', date: () => new Date() });
    expect(await lease.read(never)).toBeUndefined();
    await expect(lease.write(hold, undefined, never)).rejects.toMatchObject({
      name: 'ResourceError',
      reason: 'Gone',
    });
  });

  it('is Refused with an invalid name', async () => {
    const lease = openLease('Not A Name');
    await expect(lease.write(hold, undefined, never)).rejects.toMatchObject({ reason: 'Refused' });
  });
});
