import { describe, expect, it } from 'vitest';
import { createState } from '../../../lab/control-api/state.ts';
import { ControlError } from '../../../src/control/control.ts';
import type { ControlErrorReason, Device } from '../../../src/control/control.ts';
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

/** Passes over claims of services that do not exist, in which the control API refuses all writes; by the second. */
function passesOver(names: readonly string[], isClaimed = true) {
  const claims = new Map(names.map(name => [name, { ...CLAIM, name }] as const));
  const services = isClaimed ? [] : names.map(name => ({ ...LISTED, name }));
  const memories = [NOTHING_KNOWN];
  return async (seconds: number, reason?: ControlErrorReason, message = 'refused') => {
    const tried: string[] = [];
    const warned: string[] = [];
    const write = (name: string) => {
      tried.push(name);
      return reason ? Promise.reject(new ControlError(reason, message)) : Promise.resolve();
    };
    const api = {
      service: (name: string) => Promise.resolve(services.find(each => each.name === name)),
      ...{ putService: write, deleteService: write, serviceHosts: () => Promise.resolve([]) },
    };
    const now = NOW + seconds * 1000;
    const { memory, states, nextMs } = await coordinate(
      {
        ...{ services, claims: isClaimed ? claims : new Map<string, Claim>(), advertised: new Set<string>() },
        before: memories.at(-1) ?? NOTHING_KNOWN,
        ...{ api, tags: ['tag:mesh'], devices: [], isStale: false },
      },
      {
        ...{ installation: OURS, clock: { now: () => now }, now: () => new Date(now), random: () => 0 },
        ...{ count: () => undefined, log: { warn: text => void warned.push(text) } },
      },
    );
    memories.push(memory);
    return { tried, warned, states: [...states.values()], nextMs };
  };
}

const LISTED = {
  fields: {},
  ...{ addrs: ['100.96.0.1'], ports: ['tcp:443'], tags: ['tag:mesh'] },
  annotations: withOwners({}, [OWN], true),
};

describe('a service that the control API refuses to write', () => {
  it('is Failed with the reason, and tried again after half a minute, and then twice as long, up to 5 minutes', async () => {
    const pass = passesOver(['svc:web']);
    let seconds = 0;
    for (const waits of [30, 60, 120, 240, 300, 300]) {
      const { tried, states } = await pass(seconds, 'Invalid');
      expect(tried).toEqual(['svc:web']);
      expect(states).toMatchObject([{ status: 'Failed', reason: 'Invalid', text: 'refused' }]);
      const early = await pass(seconds + waits - 1, 'Invalid');
      expect(early.tried).toEqual([]);
      expect(early.states).toMatchObject([{ status: 'Failed', reason: 'Invalid' }]);
      seconds += waits;
    }
    const { tried, states } = await pass(seconds);
    expect([tried, states]).toMatchObject([['svc:web'], [{ status: 'Pending' }]]);
  });

  it('keeps the words of the first refusal with a reason, and gets those of another', async () => {
    const pass = passesOver(['svc:web']);
    const textOf = async (seconds: number, reason: ControlErrorReason, message: string) =>
      (await pass(seconds, reason, message)).states;
    expect(await textOf(0, 'Invalid', 'request 1')).toMatchObject([{ text: 'request 1' }]);
    expect(await textOf(30, 'Invalid', 'request 2')).toMatchObject([{ text: 'request 1' }]);
    expect(await textOf(90, 'ScopeMissing', 'request 3')).toMatchObject([{ text: 'request 3' }]);
  });

  it('is in the log once where no object lists it any more, which no status shows', async () => {
    const pass = passesOver(['svc:web'], false);
    const warnedAt = async (seconds: number, reason: ControlErrorReason) =>
      (await pass(seconds, reason)).warned.length;
    expect(await warnedAt(0, 'Unavailable')).toBe(0);
    expect(await warnedAt(3600, 'Invalid')).toBe(1);
    expect(await warnedAt(7200, 'Invalid')).toBe(0);
    expect((await passesOver(['svc:web'])(0, 'Invalid')).warned).toEqual([]);
  });
});

describe('a pass over more services than it writes', () => {
  it('writes 20, and the next one comes a second later', async () => {
    const names = (count: number) => Array.from({ length: count }, (_, at) => `svc:web-${at}`);
    const more = await passesOver(names(21))(0);
    expect([more.tried.length, more.nextMs]).toEqual([20, 1000]);
    const all = await passesOver(names(20))(0);
    expect([all.tried.length, all.nextMs]).toEqual([20, 3000]);
  });
});
