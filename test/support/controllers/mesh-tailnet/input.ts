import type { Device } from '../../../../src/control/control.ts';
import { poolNames } from '../../../../src/controllers/mesh-tailnet/pool/mesh-pods.ts';
import type { MeshPod, MeshPodSecret } from '../../../../src/controllers/mesh-tailnet/pool/mesh-pods.ts';
import type { Input } from '../../../../src/controllers/mesh-tailnet/pool/gather.ts';
import { deviceWith, podOf } from './mesh-pods.ts';

export const NOW = new Date('2026-01-15T12:00:00Z');
export const BEFORE = new Date('2026-01-15T11:00:00Z');
const AFTER = new Date('2026-01-15T13:00:00Z');
export const names = poolNames('example', 'abcd1234');

export const joined: MeshPodSecret = {
  version: '1',
  keyExpires: AFTER,
  hasKey: false,
  deviceId: 'n1',
  fqdn: 'meshd-example-0-abcd1234.example.ts.net',
  ips: ['100.64.0.1', 'fd7a:115c:a1e0::1'],
  wantsKey: false,
};
export const waiting: MeshPodSecret = {
  ...joined,
  hasKey: true,
  deviceId: undefined,
  fqdn: undefined,
  ips: [],
};

export type Given = {
  readonly secret?: MeshPodSecret;
  readonly pod?: MeshPod['pod'];
  readonly device?: Device;
};

export function meshPod(ordinal: number, { secret, pod, device: found }: Given = {}): MeshPod {
  const [name, hostname] = [names.pod(ordinal), names.hostname(ordinal)];
  return { ordinal, name, hostname, secret, hasForeignSecret: false, pod, device: found };
}

export const ready = (ordinal: number, revision = 'r1') =>
  podOf(names.pod(ordinal), { isReady: true, revision });
export const unready = (ordinal: number, revision = 'r1') =>
  podOf(names.pod(ordinal), { isReady: false, revision });
export const carrying = (ordinal: number, revision?: string) =>
  meshPod(ordinal, { secret: joined, pod: ready(ordinal, revision), device: deviceWith({ id: 'n1' }) });

export const applied = {
  replicas: 2,
  ordinals: 2,
  specHash: '2/2',
  updateRevision: 'r1',
  pods: 2,
};

export function input(more: Partial<Input>): Input {
  return {
    desired: 2,
    statefulSet: applied,
    specHashOf: ({ replicas, ordinals }) => `${replicas}/${ordinals}`,
    meshPods: [carrying(0), carrying(1)],
    missing: new Map(),
    keys: new Map(),
    replaced: new Set(),
    meshd: new Map(),
    isAuthenticated: true,
    keepsExpiry: false,
    isControlServerKnown: true,
    proxyAddress: undefined,
    now: NOW,
    ...more,
  };
}

export const EXPIRED = deviceWith({ id: 'n1', expires: BEFORE.toISOString() });

/** Mesh pods whose devices lists have shown as removed or expired for long enough. */
export function missingOf(
  confirmed: 'removed' | 'expired',
  ...ordinals: readonly number[]
): Input['missing'] {
  const inLists = confirmed === 'expired' ? ('expired' as const) : ('missing' as const);
  const listedAt = NOW.getTime();
  return new Map(ordinals.map(ordinal => [names.pod(ordinal), { inLists, since: 0, listedAt, confirmed }]));
}
