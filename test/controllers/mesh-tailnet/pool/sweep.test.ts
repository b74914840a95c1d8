import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Device } from '../../../../src/control/control.ts';
import { NO_ORPHANS, sweep } from '../../../../src/controllers/mesh-tailnet/pool/sweep.ts';
import type { SweepInput } from '../../../../src/controllers/mesh-tailnet/pool/sweep.ts';

const [OURS, THEIRS] = ['0a1b2c3d', '4e5f6a7b'];
const START = Date.UTC(2026, 0, 15, 12);

function deviceOf(fields: Partial<Device> & Pick<Device, 'id'>): Device {
  return {
    name: '',
    hostname: `meshd-example-0-${OURS}`,
    addresses: [],
    tags: ['tag:mesh'],
    isAuthorized: true,
    isOnline: false,
    isExternal: false,
    expires: undefined,
    isExpired: false,
    blocksIncoming: false,
    ...fields,
  };
}

const ORPHAN = deviceOf({ id: '1' });

function inputOf(devices: readonly Device[], seconds = 0, fields: Partial<SweepInput> = {}): SweepInput {
  return {
    devices,
    listedAt: new Date(START + seconds * 1000),
    installation: OURS,
    tags: ['tag:mesh'],
    others: ['other'],
    meshPods: [],
    ...fields,
  };
}

const idsOf = (devices: readonly Device[]) => devices.map(({ id }) => id);

/** The ids that are removed at each of some lists, given by their time in seconds and their devices. */
function removals(
  lists: readonly (readonly [seconds: number, devices: readonly Device[]])[],
  fields: Partial<SweepInput> = {},
): readonly string[] {
  let memory = NO_ORPHANS;
  return lists.map(([seconds, devices]) => {
    const swept = sweep(memory, inputOf(devices, seconds, fields));
    memory = swept.memory;
    return idsOf(swept.remove).join(' ');
  });
}

describe('an orphan', () => {
  type Case = {
    readonly it: string;
    readonly device?: Partial<Device>;
    readonly input?: Partial<SweepInput>;
    readonly is: 'orphan' | 'managed' | 'foreign';
  };
  const CASES: readonly Case[] = [
    { it: 'is an offline device of no member', is: 'orphan' },
    {
      it: 'is one of a MeshTailnet that no longer exists',
      device: { hostname: `meshd-old-3-${OURS}` },
      is: 'orphan',
    },
    {
      it: 'is one of a MeshTailnet whose name ends in digits',
      device: { hostname: `meshd-old-3-12-${OURS}` },
      is: 'orphan',
    },
    {
      it: 'is one whose hostname a member with another device has',
      input: { meshPods: [{ hostname: ORPHAN.hostname, deviceId: '2' }] },
      is: 'orphan',
    },
    { it: 'is one that awaits approval', device: { isAuthorized: false }, is: 'orphan' },
    { it: 'has one of several tags', device: { tags: ['tag:web', 'tag:mesh'] }, is: 'orphan' },
    { it: 'is never online', device: { isOnline: true }, is: 'managed' },
    {
      it: 'is not the device of a member, whatever its hostname',
      input: { meshPods: [{ hostname: 'meshd-example-1', deviceId: '1' }] },
      is: 'managed',
    },
    {
      it: 'does not have the hostname of a member that joins',
      input: { meshPods: [{ hostname: ORPHAN.hostname, deviceId: undefined }] },
      is: 'managed',
    },
    {
      it: 'is not of another MeshTailnet that exists',
      device: { hostname: `meshd-other-0-${OURS}` },
      is: 'managed',
    },
    {
      it: 'is not of another installation',
      device: { hostname: `meshd-example-0-${THEIRS}` },
      is: 'foreign',
    },
    {
      it: 'is not of another installation that has our id in the name of a MeshTailnet',
      device: { hostname: `meshd-${OURS}-0-${THEIRS}` },
      is: 'foreign',
    },
    { it: 'has an ordinal', device: { hostname: `meshd-example-${OURS}` }, is: 'foreign' },
    { it: 'has the name of a MeshTailnet', device: { hostname: `meshd-0-${OURS}` }, is: 'foreign' },
    { it: 'has the prefix of mesh pods', device: { hostname: `web-example-0-${OURS}` }, is: 'foreign' },
    { it: 'has nothing after our id', device: { hostname: `${ORPHAN.hostname}-1` }, is: 'foreign' },
    { it: 'has one of our tags', device: { tags: ['tag:web'] }, is: 'foreign' },
    { it: 'is not untagged', device: { tags: [] }, is: 'foreign' },
    { it: 'is not shared in from another tailnet', device: { isExternal: true }, is: 'foreign' },
  ];
  it.each(CASES)('$it', ({ device = {}, input = {}, is }) => {
    const { managed, orphaned, found } = sweep(NO_ORPHANS, inputOf([{ ...ORPHAN, ...device }], 0, input));
    expect({ managed, orphaned, found: found.length }).toEqual({
      managed: is === 'foreign' ? 0 : 1,
      orphaned: is === 'orphan' ? 1 : 0,
      found: is === 'orphan' ? 1 : 0,
    });
  });

  it('is found once', () => {
    const first = sweep(NO_ORPHANS, inputOf([ORPHAN]));
    const next = deviceOf({ id: '2' });
    const second = sweep(first.memory, inputOf([ORPHAN, next], 30));
    expect([idsOf(first.found), idsOf(second.found)]).toEqual([['1'], ['2']]);
    expect(second.orphaned).toBe(2);
  });
});

describe('an orphan is removed', () => {
  it('after three lists in a row and ten minutes', () => {
    const at = (seconds: number) => [seconds, [ORPHAN]] as const;
    expect(removals([at(0), at(300), at(599), at(600)])).toEqual(['', '', '', '1']);
    expect(removals([at(0), at(3600), at(7200)])).toEqual(['', '', '1']);
  });

  it('after another age, if there is one', () => {
    const at = (seconds: number) => [seconds, [ORPHAN]] as const;
    expect(removals([at(0), at(1), at(2), at(3)], { minAgeMs: 3000 })).toEqual(['', '', '', '1']);
  });

  it('not because the same list is seen again', () => {
    const lists = [0, 700, 700, 700, 700].map(seconds => [seconds, [ORPHAN]] as const);
    expect(removals(lists)).toEqual(['', '', '', '', '']);
  });

  it.each([
    ['came online', [{ ...ORPHAN, isOnline: true }]],
    ['was missing from a list', []],
  ])('only after as long again if it %s', (_, devices) => {
    const at = (seconds: number) => [seconds, [ORPHAN]] as const;
    const lists = [at(0), at(300), [500, devices] as const, at(600), at(900), at(1200)];
    expect(removals(lists)).toEqual(['', '', '', '', '', '1']);
  });

  it('again, after as long again, while the list still has it', () => {
    const lists = [0, 300, 600, 600, 700, 900, 1200].map(seconds => [seconds, [ORPHAN]] as const);
    expect(removals(lists)).toEqual(['', '', '1', '', '', '', '1']);
  });

  it('ten at a time, and the rest with the next passes', () => {
    const many = Array.from({ length: 25 }, (_, index) => deviceOf({ id: String(index) }));
    const lists = [0, 300, 600, 600, 600, 600].map(seconds => [seconds, many] as const);
    expect(removals(lists).map(ids => (ids === '' ? 0 : ids.split(' ').length))).toEqual([
      0, 0, 10, 10, 5, 0,
    ]);
  });
});

describe('two installations in one tailnet', () => {
  const INSTALLATIONS = [OURS, THEIRS];
  type Simulated = {
    device: Device;
    readonly owner: string;
    isMember: boolean;
    idleSince: number;
    idleLists: number;
  };
  const scenario = fc.record({
    devices: fc.array(
      fc.record({
        owner: fc.constantFrom(...INSTALLATIONS),
        pool: fc.constantFrom('example', 'old', `x-0-${OURS}`, `x-0-${THEIRS}`),
        tags: fc.constantFrom(['tag:mesh'], ['tag:mesh'], ['tag:web']),
        isExternal: fc.constantFrom(false, false, true),
      }),
      { minLength: 1, maxLength: 6 },
    ),
    events: fc.array(
      fc.record({
        nth: fc.nat(5),
        change: fc.constantFrom('none', 'none', 'online', 'member'),
        afterMs: fc.constantFrom(30_000, 300_000, 3600_000),
      }),
      { maxLength: 20 },
    ),
  });

  type Scenario = typeof scenario extends fc.Arbitrary<infer S> ? S : never;

  /** Both sweep after each list, and what they remove is deleted; returns the devices that are left. */
  function simulate({ devices, events }: Scenario) {
    const tailnet = new Map(
      devices.map(({ owner, pool, ...fields }, nth): [string, Simulated] => {
        const device = deviceOf({ id: String(nth), hostname: `meshd-${pool}-${nth}-${owner}`, ...fields });
        return [device.id, { device, owner, isMember: false, idleSince: START, idleLists: 0 }];
      }),
    );
    const memories = new Map(INSTALLATIONS.map(id => [id, NO_ORPHANS]));
    let at = START;
    const settled = [0, 600_000, 600_000].map(afterMs => ({ nth: -1, change: 'none', afterMs }));
    for (const { nth, change, afterMs } of [...events, ...settled]) {
      at += afterMs;
      const changed = tailnet.get(String(nth));
      if (changed && change === 'online') {
        changed.device = { ...changed.device, isOnline: !changed.device.isOnline };
      }
      if (changed && change === 'member') changed.isMember = !changed.isMember;
      const listed = [...tailnet.values()];
      for (const one of listed) {
        const isIdle = !one.device.isOnline && !one.isMember;
        one.idleSince = isIdle && one.idleLists > 0 ? one.idleSince : at;
        one.idleLists = isIdle ? one.idleLists + 1 : 0;
      }
      for (const installation of INSTALLATIONS) {
        const meshPods = listed
          .filter(({ isMember, owner }) => isMember && owner === installation)
          .map(({ device: { id, hostname } }) => ({ hostname, deviceId: id }));
        const fields = { installation, meshPods, others: [], listedAt: new Date(at) };
        const { memory, remove } = sweep(
          memories.get(installation) ?? NO_ORPHANS,
          inputOf(
            listed.map(({ device }) => device),
            0,
            fields,
          ),
        );
        memories.set(installation, memory);
        for (const { id } of remove) {
          const removed = tailnet.get(id);
          expect(removed).toMatchObject({
            owner: installation,
            isMember: false,
            device: { isOnline: false },
          });
          expect(removed?.idleLists).toBeGreaterThanOrEqual(3);
          expect(at - (removed?.idleSince ?? at)).toBeGreaterThanOrEqual(600_000);
          tailnet.delete(id);
        }
      }
    }
    return [...tailnet.values()];
  }

  it('remove their own orphans in the end, and never another device', () => {
    fc.assert(
      fc.property(scenario, given => {
        const left = simulate(given);
        for (const { device, isMember } of left) {
          const isForeign = device.isExternal || !device.tags.includes('tag:mesh');
          expect(isForeign || isMember || device.isOnline).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });
});
