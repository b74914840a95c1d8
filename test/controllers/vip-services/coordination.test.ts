import { describe, expect, it } from 'vitest';
import { createState } from '../../../lab/control-api/state.ts';
import type { Device } from '../../../src/control/control.ts';
import { coordinate, NOTHING_KNOWN } from '../../../src/controllers/vip-services/coordination.ts';
import type { CoordinationOptions } from '../../../src/controllers/vip-services/coordination.ts';
import type { Claim } from '../../../src/controllers/vip-services/decision.ts';
import { ownersOf, withOwners } from '../../../src/controllers/vip-services/owners.ts';
import type { Owner } from '../../../src/controllers/vip-services/owners.ts';
import { servicesApiOn } from '../../support/controllers/vip-services/services-api.ts';

const NOW = Date.UTC(2026, 0, 15, 12);
const [OURS, THEIRS] = ['0a1b2c3d', 'ffffffff'];

const CLAIM: Claim = {
  ...{ name: 'svc:web', object: 'default/web', port: 443, tags: ['tag:mesh'], strategy: 'shared' },
  ...{ notAdoptable: undefined, shareWith: [] },
  ...{ mayCreate: true, kept: undefined, cluster: 'here', heartbeatMs: 300_000, staleMs: 1_800_000 },
};

const OWN: Owner = {
  ...{ installation: OURS, cluster: 'here', object: 'default/web', strategy: 'shared' },
  ...{ ports: ['tcp:443'], tags: ['tag:mesh'], shareWith: [], heartbeat: new Date(NOW) },
};
const THERE = { installation: THEIRS, cluster: 'there', shareWith: [OURS] };
/** An installation whose operator has been away for an hour. */
const AWAY: Owner = {
  ...{ ...OWN, ...THERE },
  heartbeat: new Date(NOW - 3_600_000),
};

const podOfOther = (isOnline: boolean): Device => ({
  ...{ id: 'n1', name: 'n1', hostname: `meshd-example-0-${THEIRS}`, addresses: [], tags: ['tag:mesh'] },
  ...{ isAuthorized: true, isOnline, isExternal: false, expires: undefined },
  ...{ isExpired: false, blocksIncoming: false },
});

type Pass = Partial<Pick<CoordinationOptions, 'devices' | 'isStale'>> & {
  /** From before it was created where it is not. */
  readonly isListed?: boolean;
  readonly isClaimed?: boolean;
};

/** One pass over a service with these owners: the owners after it, what was counted, and what is kept. */
async function passOver(
  owners: readonly Owner[],
  { devices, isStale = false, isListed = true, isClaimed = true }: Pass,
) {
  const clock = { now: () => NOW };
  const settings = { behaviour: {}, clock, seed: 1, settings: {} };
  const state = createState({ dialect: 'vendor', domain: 'example.ts.net', ...settings });
  const annotations = withOwners({}, owners, false);
  const addrs = ['100.96.0.1', 'fd7a:115c:a1e0:ff::1'];
  state.services.put('svc:web', {
    name: 'svc:web',
    addrs,
    ports: ['tcp:443'],
    tags: ['tag:mesh'],
    annotations,
  });
  const api = servicesApiOn(state, (_, act) => Promise.resolve(act()));
  const claims = new Map(isClaimed ? [[CLAIM.name, CLAIM]] : []);
  const services = isListed ? await api.services() : [];
  const counted: string[] = [];
  const { memory } = await coordinate(
    {
      ...{ services, claims, advertised: new Set<string>(), before: NOTHING_KNOWN },
      ...{ api: api, tags: ['tag:mesh'], devices, isStale },
    },
    {
      ...{ installation: OURS, clock, now: () => new Date(NOW), random: () => 0 },
      ...{ count: result => void counted.push(result), log: { warn: () => undefined } },
    },
  );
  const after = ownersOf(await api.service('svc:web')).map(({ cluster }) => cluster);
  return { owners: after, counted, memory };
}

describe('the entry of an owner whose operator is away', () => {
  it.each([
    ['is kept while one of its mesh pods is online', [podOfOther(true)], false, ['here', 'there']],
    ['is removed while none of its mesh pods is online', [podOfOther(false)], false, ['here']],
    ['is removed while it has no mesh pod', [], false, ['here']],
    [
      'is removed while a device that another tailnet shares has the hostname of its mesh pod',
      [{ ...podOfOther(true), isExternal: true }],
      false,
      ['here'],
    ],
    [
      'is removed while a device without a tag of the MeshTailnet has the hostname of its mesh pod',
      [{ ...podOfOther(true), tags: ['tag:laptop'] }],
      false,
      ['here'],
    ],
    [
      'is kept where the list of devices is stale: a pod may be online by now',
      [podOfOther(false)],
      true,
      ['here', 'there'],
    ],
    ['is kept where the devices are not known', undefined, false, ['here', 'there']],
  ] as const)('%s', async (_, devices, isStale, owners) => {
    expect((await passOver([OWN, AWAY], { devices, isStale })).owners).toEqual(owners);
  });
});

describe('a service that is read again before it is written', () => {
  it.each([
    ['is neither written nor counted where it is as it should be by now', [OWN], ['here'], []],
    [
      'is joined where another installation has created it',
      [{ ...OWN, ...THERE }],
      ['there', 'here'],
      ['joined'],
    ],
  ] as const)('%s', async (_, before, owners, counted) => {
    expect(await passOver(before, { isListed: false })).toMatchObject({ owners, counted });
  });
});

describe('a list of services without those of this installation', () => {
  const isolated: Owner = { ...OWN, ...THERE, strategy: 'isolated' };
  it.each([
    ['counts, since nothing is left to remove', false, 1],
    ['does not count while a service is claimed, though another installation refuses to share it', true, 0],
  ])('%s', async (_, isClaimed, listsWithout) => {
    expect((await passOver([isolated], { isClaimed })).memory).toMatchObject({ listsWithout });
  });
});
