import { describe, expect, it } from 'vitest';
import type { Device } from '../../../../src/control/control.ts';
import {
  deviceOf,
  meshPodSecretOf,
  poolNames,
} from '../../../../src/controllers/mesh-tailnet/pool/mesh-pods.ts';
import type { MeshPodSecret } from '../../../../src/controllers/mesh-tailnet/pool/mesh-pods.ts';
import { plan } from '../../../../src/controllers/mesh-tailnet/pool/plan.ts';
import type { Input } from '../../../../src/controllers/mesh-tailnet/pool/gather.ts';
import type { Action } from '../../../../src/controllers/mesh-tailnet/pool/plan.ts';
import { deviceWith, podOf } from '../../../support/controllers/mesh-tailnet/mesh-pods.ts';
import {
  applied,
  BEFORE,
  carrying,
  EXPIRED,
  joined,
  missingOf,
  meshPod,
  names,
  NOW,
  ready,
  input,
  unready,
  waiting,
} from '../../../support/controllers/mesh-tailnet/input.ts';
import type { Given } from '../../../support/controllers/mesh-tailnet/input.ts';

/** The actions as texts. */
function planned(more: Partial<Input>): readonly string[] {
  return plan(input(more)).map(describeAction);
}

function describeAction(action: Action): string {
  switch (action.do) {
    case 'apply':
      return `apply ${action.replicas} of ${action.ordinals}`;
    case 'create-key':
      return `create-key ${action.meshPod.ordinal}`;
    case 'revoke-keys':
      return `revoke-keys ${action.ordinal}`;
    case 'delete-device':
      return `delete-device ${action.id}`;
    case 'delete-secret':
      return `delete-secret ${action.name}`;
    case 'delete-pod':
      return `delete-pod ${action.pod.metadata.name}`;
    case 'finish':
      return 'finish';
  }
}

describe('the plan of a pool', () => {
  it('does nothing where all members are ready', () => {
    expect(planned({})).toEqual([]);
  });

  it('leaves mesh pods as they are while the control server is not known, and removes them even then', () => {
    const stopped = { ...applied, replicas: 0, ordinals: 0, pods: 0 };
    const isControlServerKnown = false;
    expect(planned({ meshPods: [meshPod(0), meshPod(1)], isControlServerKnown })).toEqual([]);
    expect(planned({ desired: 0, meshPods: [], statefulSet: stopped, isControlServerKnown })).toEqual([
      'finish',
    ]);
  });

  it('stores the number of members, then their keys, and then starts them', () => {
    const meshPods = [meshPod(0), meshPod(1)];
    expect(planned({ statefulSet: undefined, meshPods })).toEqual([
      'apply 0 of 2',
      'create-key 0',
      'create-key 1',
      'apply 2 of 2',
    ]);
  });

  it('creates nothing for a tailnet that is not authenticated', () => {
    const meshPods = [meshPod(0), meshPod(1)];
    expect(planned({ statefulSet: undefined, meshPods, isAuthenticated: false })).toEqual([]);
  });

  it('starts the members that have a Secret where the next one has none', () => {
    const meshPods = [meshPod(0, { secret: waiting }), meshPod(1)];
    const statefulSet = { ...applied, replicas: 0, specHash: '0/2', pods: 0 };
    expect(planned({ statefulSet, meshPods, isAuthenticated: false })).toEqual(['apply 1 of 2']);
  });

  it('keeps pods running where the Secret of the first one is missing', () => {
    const meshPods = [meshPod(0, { pod: ready(0) }), carrying(1)];
    expect(planned({ meshPods })).toEqual(['create-key 0', 'delete-pod meshd-example-0']);
    expect(planned({ meshPods, isAuthenticated: false })).toEqual([]);
  });

  it.each<[string, Given, readonly string[]]>([
    ['has a key that is valid', { secret: waiting }, []],
    ['has a key that has expired', { secret: { ...waiting, keyExpires: BEFORE } }, ['create-key 1']],
    [
      'has a key that was rejected',
      { secret: waiting, pod: podOf(names.pod(1), { terminated: 'backend error: invalid key: is used' }) },
      ['create-key 1', 'delete-pod meshd-example-1'],
    ],
    [
      'asks for another key',
      { secret: { ...waiting, wantsKey: true }, pod: unready(1) },
      ['create-key 1', 'delete-pod meshd-example-1'],
    ],
    ['has joined and starts', { secret: joined, pod: unready(1) }, []],
    [
      'has joined, with its id not yet written',
      { secret: { ...joined, deviceId: undefined }, device: deviceWith({}), pod: unready(1) },
      [],
    ],
    [
      'has joined with a key that has expired, and awaits approval',
      {
        secret: { ...waiting, keyExpires: BEFORE },
        device: deviceWith({ isAuthorized: false }),
        pod: unready(1),
      },
      [],
    ],
  ])('of a member that %s', (_, given, steps) => {
    expect(planned({ meshPods: [carrying(0), meshPod(1, given)] })).toEqual(steps);
  });

  it('gives a new key to a device whose node key has expired, and a new identity for one that was removed', () => {
    const expired = meshPod(1, { secret: joined, pod: unready(1), device: EXPIRED });
    expect(planned({ missing: missingOf('expired', 1), meshPods: [carrying(0), expired] })).toEqual([
      'create-key 1',
      'delete-pod meshd-example-1',
    ]);
    const removed = meshPod(1, { secret: joined, pod: unready(1) });
    expect(planned({ missing: missingOf('removed', 1), meshPods: [carrying(0), removed] })).toEqual([
      'delete-secret meshd-example-1',
      'delete-pod meshd-example-1',
    ]);
  });

  it('deletes a device that has expired where it would stay expired', () => {
    const expired = meshPod(1, { secret: joined, pod: unready(1), device: deviceWith({}) });
    const missing = missingOf('expired', 1);
    expect(planned({ keepsExpiry: true, missing, meshPods: [carrying(0), expired] })).toEqual([
      'delete-device n1',
      'delete-secret meshd-example-1',
      'delete-pod meshd-example-1',
    ]);
  });

  it('deletes a device that is expired still after two keys, and joins as another one', () => {
    const refused = meshPod(1, {
      secret: { ...joined, hasKey: true },
      pod: podOf(names.pod(1), { terminated: 'backend error: authkey already used' }),
      device: EXPIRED,
    });
    const givenKeys = (count: number) =>
      planned({
        meshPods: [carrying(0), refused],
        keys: new Map([[names.pod(1), { count, createdAt: 0, isRefused: false }]]),
      });
    expect(givenKeys(1)).toEqual(['create-key 1', 'delete-pod meshd-example-1']);
    expect(givenKeys(2)).toEqual([
      'delete-device n1',
      'delete-secret meshd-example-1',
      'delete-pod meshd-example-1',
    ]);
  });

  it('creates keys ever more slowly for a member that does not carry traffic', () => {
    const refused = meshPod(1, {
      secret: waiting,
      pod: podOf(names.pod(1), { terminated: 'backend error: authkey revoked' }),
    });
    const waitMs = (count: number) => {
      const created = (minutes: number) => NOW.getTime() - minutes * 60_000;
      const isCreated = (minutes: number) =>
        planned({
          meshPods: [carrying(0), refused],
          keys: new Map([[names.pod(1), { count, createdAt: created(minutes), isRefused: false }]]),
        }).length > 0;
      return [0, 1, 2, 4, 8, 16, 32, 60].find(isCreated);
    };
    expect([0, 1, 2, 3, 4, 5, 6, 7, 8, 99].map(waitMs)).toEqual([0, 0, 1, 2, 4, 8, 16, 32, 60, 60]);
  });

  it('replaces a key a minute after a login failed for a reason that is not known', () => {
    const failed = meshPod(1, {
      secret: waiting,
      pod: podOf(names.pod(1), { terminated: 'tailscale up failed: exit status 1' }),
    });
    const after = (ms: number) =>
      planned({
        meshPods: [carrying(0), failed],
        keys: new Map([[names.pod(1), { count: 1, createdAt: NOW.getTime() - ms, isRefused: false }]]),
      });
    expect(after(59_000)).toEqual([]);
    expect(after(60_000)).toEqual(['create-key 1', 'delete-pod meshd-example-1']);
  });

  it('replaces members that are ready and whose devices were removed: all at once beside another one', () => {
    const meshPods = [carrying(0), carrying(1), carrying(2)];
    const three = {
      desired: 3,
      statefulSet: { ...applied, replicas: 3, ordinals: 3, specHash: '3/3', pods: 3 },
    };
    const both = ['delete-secret meshd-example-0', 'delete-pod meshd-example-0'].concat([
      'delete-secret meshd-example-2',
      'delete-pod meshd-example-2',
    ]);
    expect(planned({ ...three, meshPods, missing: missingOf('removed', 0, 2) })).toEqual(both);
  });

  it('replaces all members one by one where the devices of all were removed, because lists may be wrong', () => {
    const missing = missingOf('removed', 0, 1);
    expect(planned({ missing })).toEqual(['delete-secret meshd-example-0', 'delete-pod meshd-example-0']);
    const replaced = new Set([names.pod(0)]);
    const starting = meshPod(0, { secret: waiting, pod: unready(0) });
    expect(
      planned({ missing: missingOf('removed', 1), replaced, meshPods: [starting, carrying(1)] }),
    ).toEqual([]);
    expect(planned({ missing: missingOf('removed', 1) })).toEqual([
      'delete-secret meshd-example-1',
      'delete-pod meshd-example-1',
    ]);
  });

  it('takes no identity while the control API does not accept the credentials', () => {
    expect(planned({ missing: missingOf('removed', 0, 1), isAuthenticated: false })).toEqual([]);
  });

  it('applies the objects where they differ, or the StatefulSet was scaled by others', () => {
    expect(planned({ statefulSet: { ...applied, specHash: 'old' } })).toEqual(['apply 2 of 2']);
    expect(planned({ statefulSet: { ...applied, replicas: 5 } })).toEqual(['apply 2 of 2']);
  });
});

describe('pods of an earlier template are replaced', () => {
  it('one by one, only while all others are ready', () => {
    const both = [carrying(0, 'r0'), carrying(1, 'r0')];
    expect(planned({ meshPods: both })).toEqual(['delete-pod meshd-example-1']);
    const one = [carrying(0, 'r0'), meshPod(1, { secret: joined, pod: unready(1) })];
    expect(planned({ meshPods: one })).toEqual([]);
    expect(planned({ meshPods: [carrying(0, 'r0'), carrying(1)] })).toEqual(['delete-pod meshd-example-0']);
  });

  it('at once where they carry no traffic', () => {
    const meshPods = [carrying(0), meshPod(1, { secret: joined, pod: unready(1, 'r0') })];
    expect(planned({ meshPods })).toEqual(['delete-pod meshd-example-1']);
  });

  it('never before the controller of StatefulSets has seen the last change', () => {
    const statefulSet = { ...applied, updateRevision: undefined };
    expect(planned({ statefulSet, meshPods: [carrying(0, 'r0'), carrying(1, 'r0')] })).toEqual([]);
  });
});

describe('a member that is no longer wanted', () => {
  const three = { ...applied, replicas: 3, ordinals: 3, specHash: '3/3', pods: 3 };
  const extra = (given: Given) => [carrying(0), carrying(1), meshPod(2, given)];

  it('is stopped before its device is deleted, and its Secret goes last', () => {
    expect(planned({ statefulSet: three, meshPods: extra({ secret: joined, pod: ready(2) }) })).toEqual([
      'apply 2 of 3',
    ]);
    const stopping = { ...three, replicas: 2, specHash: '2/3' };
    expect(planned({ statefulSet: stopping, meshPods: extra({ secret: joined, pod: ready(2) }) })).toEqual(
      [],
    );
    const stopped = { ...stopping, pods: 2 };
    expect(
      planned({ statefulSet: stopped, meshPods: extra({ secret: { ...joined, deviceId: 'n3' } }) }),
    ).toEqual(['delete-device n3', 'delete-secret meshd-example-2']);
    expect(planned({ statefulSet: stopped, meshPods: extra({}) })).toEqual(['apply 2 of 2']);
  });

  it('loses a key that it has not used', () => {
    const stopped = { ...three, replicas: 2, specHash: '2/3', pods: 2 };
    expect(planned({ statefulSet: stopped, meshPods: extra({ secret: waiting }) })).toEqual([
      'revoke-keys 2',
      'delete-secret meshd-example-2',
    ]);
    const unwritten = { secret: { ...joined, deviceId: undefined }, device: deviceWith({ id: 'n7' }) };
    expect(planned({ statefulSet: stopped, meshPods: extra(unwritten) })).toEqual([
      'revoke-keys 2',
      'delete-device n7',
      'delete-secret meshd-example-2',
    ]);
  });
});

describe('a pool that is removed', () => {
  it('is scaled down, loses its devices and Secrets, and then everything else', () => {
    const removed = { desired: 0 };
    expect(planned(removed)).toEqual(['apply 0 of 2']);
    const stopping = { ...applied, replicas: 0, pods: 1 };
    expect(planned({ ...removed, statefulSet: stopping })).toEqual([]);
    const stopped = { ...stopping, pods: 0 };
    const left = [meshPod(0, { secret: joined }), meshPod(1, { secret: { ...joined, deviceId: 'n2' } })];
    expect(planned({ ...removed, statefulSet: stopped, meshPods: left })).toEqual([
      'delete-device n1',
      'delete-secret meshd-example-0',
      'delete-device n2',
      'delete-secret meshd-example-1',
    ]);
    expect(planned({ ...removed, statefulSet: stopped, meshPods: [meshPod(0), meshPod(1)] })).toEqual([
      'finish',
    ]);
  });

  it('is removed in the same way where the StatefulSet has gone before', () => {
    const left = [meshPod(0, { secret: joined }), meshPod(1)];
    expect(planned({ desired: 0, statefulSet: undefined, meshPods: left })).toEqual([
      'delete-device n1',
      'delete-secret meshd-example-0',
    ]);
    expect(planned({ desired: 0, statefulSet: undefined, meshPods: [] })).toEqual(['finish']);
  });
});

describe('the names of a pool', () => {
  it('are those of its own installation and its own MeshTailnet', () => {
    expect(names.hostname(1)).toBe('meshd-example-1-abcd1234');
    expect(names.isHostname('meshd-example-1-abcd1234')).toBe(true);
    for (const other of [
      'meshd-example-1-dcba4321',
      'meshd-example-2-1-abcd1234',
      'meshd-example-x-abcd1234',
      'web-1',
    ])
      expect(names.isHostname(other)).toBe(false);
    expect(names.isDescription(names.description(3))).toBe(true);
    expect(poolNames('example-2', 'abcd1234').isDescription(names.description(3))).toBe(false);
  });

  it('of the longest MeshTailnet fit into a description and a hostname', () => {
    const longest = poolNames('x'.repeat(40), 'abcd1234');
    expect(longest.description(63).length).toBeLessThanOrEqual(50);
    expect(longest.hostname(63).length).toBeLessThanOrEqual(63);
    expect(longest.isDescription(poolNames(`${'x'.repeat(39)}y`, 'abcd1234').description(0))).toBe(false);
  });
});

describe('what meshd has written into a Secret', () => {
  const read = (data: Readonly<Record<string, string>>) =>
    meshPodSecretOf({ version: '1', data, annotations: { 'mesh-gateway.dev/join-key': 'k1' } });

  it('is its device', () => {
    const data = { device_id: 'n1', device_fqdn: 'a.example.ts.net.', device_ips: '["100.64.0.1"]' };
    expect(read(data)).toMatchObject({
      deviceId: 'n1',
      fqdn: 'a.example.ts.net',
      ips: ['100.64.0.1'],
      hasKey: false,
    });
  });

  it('is ignored where it is not as expected', () => {
    expect(read({ device_id: '', device_ips: '{"a":' })).toMatchObject({ deviceId: undefined, ips: [] });
    expect(read({ device_ips: '[1, "100.64.0.1"]' })?.ips).toEqual(['100.64.0.1']);
  });

  it('asks for another key only in place of the one that it has', () => {
    expect(read({ authkey: 'a', reissue_authkey: 'a' })?.wantsKey).toBe(true);
    expect(read({ authkey: 'b', reissue_authkey: 'a' })?.wantsKey).toBe(false);
    expect(read({ reissue_authkey: 'no-authkey' })?.wantsKey).toBe(true);
    expect(read({ authkey: 'a' })?.wantsKey).toBe(false);
  });

  it('names the device by its id, also where another has its hostname', () => {
    const [own, other] = [deviceWith({ id: 'n1', hostname: 'h' }), deviceWith({ id: 'n9', hostname: 'h' })];
    const found = (secret: MeshPodSecret, devices: readonly Device[]) =>
      deviceOf({ hostname: 'h', secret }, devices, ['tag:mesh']);
    expect(found(joined, [other, own])).toBe(own);
    expect(found(joined, [other])).toBeUndefined();
    expect(found(waiting, [{ ...own, isOnline: false }, other])).toBe(other);
  });

  it('names no device that has another hostname, or whose tag others may assign', () => {
    const found = (secret: MeshPodSecret, fields: Partial<Device>) =>
      deviceOf({ hostname: 'h', secret }, [deviceWith({ id: 'n1', hostname: 'h', ...fields })], ['tag:mesh']);
    expect(found(joined, { hostname: 'db-1' })).toBeUndefined();
    expect(found(waiting, { tags: ['tag:web'] })).toBeUndefined();
    expect(found(waiting, { isExternal: true })).toBeUndefined();
    expect(found(joined, { tags: [] })).toBeDefined();
  });
});
