import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../../src/api/generated/types.ts';
import { formatProblem } from '../../../../src/api/problem.ts';
import type { Input } from '../../../../src/controllers/mesh-tailnet/relays/gather.ts';
import { assignPorts, NO_PLAN, plan } from '../../../../src/controllers/mesh-tailnet/relays/plan.ts';
import type {
  AssignOptions,
  PlanOptions,
  PortRange,
  PreviousPlan,
  WantedTarget,
} from '../../../../src/controllers/mesh-tailnet/relays/plan.ts';
import { declaredBy, frontInput } from '../../../support/controllers/mesh-tailnet/relays/front.ts';
import { named } from '../../../support/declared.ts';
import { meshTailnet } from '../../../support/objects.ts';
import { resourceOf } from '../../../support/store/resources.ts';

const RANGE = { first: 20_000, last: 29_999 };
const NONE = new Map<number, string>();

function want(target: string, fields: Partial<WantedTarget> = {}): WantedTarget {
  return { target, createdAt: '2026-01-15T12:00:00Z', namespace: 'default', name: 'dns', ...fields };
}

/** Assigns ports, without a limit for namespaces unless it is given. */
function assign(
  previous: ReadonlyMap<number, string>,
  wanted: readonly WantedTarget[],
  range: PortRange,
  options: Partial<AssignOptions> = {},
) {
  return assignPorts(previous, wanted, { range, perNamespace: Infinity, owners: new Map(), ...options });
}

/** The assignment as a relay gets it. */
function inverted(ports: ReadonlyMap<string, number>): ReadonlyMap<number, string> {
  return new Map([...ports].map(([target, port]) => [port, target]));
}

const [ONE, TWO, THREE] = ['100.64.0.1:53', '100.64.0.2:53', '[fd7a:115c:a1e0::3]:53'];

describe('the relay ports of a tailnet', () => {
  it('are in the range, one for each target', () => {
    const { ports, missing } = assign(NONE, [want(ONE), want(TWO), want(THREE)], RANGE);
    expect([...ports.keys()].sort()).toEqual([ONE, TWO, THREE].sort());
    expect(new Set(ports.values()).size).toBe(3);
    for (const port of ports.values()) expect(port >= RANGE.first && port <= RANGE.last).toBe(true);
    expect([...missing]).toEqual([]);
  });

  it('are shared by objects with the same target', () => {
    const { ports } = assign(NONE, [want(ONE), want(ONE, { namespace: 'other' })], RANGE);
    expect(ports.size).toBe(1);
  });

  it.each<[string, [number, string][], [string, number][]]>([
    ['stay as they were', [[20_005, ONE]], [[ONE, 20_005]]],
    [
      'are the lowest of several',
      [
        [20_009, ONE],
        [20_005, ONE],
      ],
      [[ONE, 20_005]],
    ],
    ['ignore targets that are not wanted', [[20_005, TWO]], [[ONE, hashedPort(ONE)]]],
    ['are replaced where they are outside of the range', [[19_999, ONE]], [[ONE, hashedPort(ONE)]]],
  ])('%s', (_, previous, expected) => {
    const { ports, missing } = assign(new Map(previous), [want(ONE)], RANGE);
    expect([...ports]).toEqual(expected);
    expect(missing.size).toBe(0);
  });

  it('are not those of a target that is no longer wanted', () => {
    const range = { first: 20_000, last: 20_001 };
    const before = new Map([[20_001, TWO]]);
    expect([...assign(before, [want(ONE)], range).ports]).toEqual([[ONE, 20_000]]);
    expect([...assign(before, [want(ONE), want(THREE)], range).missing.keys()]).toHaveLength(1);
  });

  it('do not collide where two targets have the same hash', () => {
    const range = { first: 20_000, last: 20_001 };
    const { ports } = assign(NONE, [want(ONE), want(TWO)], range);
    expect([...ports.values()].sort()).toEqual([20_000, 20_001]);
  });
});

describe('targets for which no relay port is left', () => {
  const range = { first: 20_000, last: 20_000 };

  it('are reported with the fix, in at most 256 characters', () => {
    const { missing } = assign(new Map([[20_000, TWO]]), [want(ONE)], range);
    const text = 'no relay port is left in 20000-20000: widen meshPods.relayPorts (RELAY_PORTS)';
    expect([...missing].map(([target, why]) => [target, formatProblem(why)])).toEqual([[ONE, text]]);
    expect(text.length).toBeLessThanOrEqual(256);
  });

  it.each<[string, [number, string][], WantedTarget[], string]>([
    [
      'are not those that have a port',
      [[20_000, TWO]],
      [want(ONE, { createdAt: '2020-01-01T00:00:00Z' }), want(TWO)],
      TWO,
    ],
    [
      'are those of newer objects',
      [],
      [want(ONE), want(TWO, { createdAt: '2026-01-15T11:00:00Z', namespace: 'z' })],
      TWO,
    ],
    [
      'are, of equally old objects, the later ones by name',
      [],
      [want(ONE), want(TWO, { namespace: 'a' })],
      TWO,
    ],
    [
      'are those of objects without a creationTimestamp',
      [],
      [want(ONE, { createdAt: undefined }), want(TWO)],
      TWO,
    ],
    [
      'are ranked by the oldest object that wants them',
      [],
      [want(ONE), want(TWO, { namespace: 'z' }), want(TWO, { namespace: 'a' })],
      TWO,
    ],
  ])('%s', (_, previous, wanted, winner) => {
    const { ports, missing } = assign(new Map(previous), wanted, range);
    expect([...ports]).toEqual([[winner, 20_000]]);
    expect([...missing.keys()]).toEqual([ONE]);
  });
});

/** The port that a target gets while nothing else has one. */
describe('the share of a namespace', () => {
  const targets = (count: number, from = 0) =>
    Array.from({ length: count }, (_, index) => `100.64.0.${from + index}:53`);
  const wants = (namespace: string, names: readonly string[], fields: Partial<WantedTarget> = {}) =>
    names.map(name => want(name, { namespace, ...fields }));
  const OLDER = { createdAt: '2026-01-15T11:00:00Z' };
  const portsOf = ({ ports }: Pick<ReturnType<typeof assign>, 'ports'>, names: readonly string[]) =>
    names.filter(name => ports.has(name)).length;

  /** Assigns ports as the controller does, again and again. */
  function assigned(perNamespace: number) {
    let state = { ports: new Map() as ReadonlyMap<string, number>, owners: new Map<string, string>() };
    return (wanted: readonly WantedTarget[], options: Partial<AssignOptions> = {}) => {
      const { owners } = state;
      const assignment = assign(inverted(state.ports), wanted, RANGE, { perNamespace, owners, ...options });
      state = { ports: assignment.ports, owners: new Map(assignment.owners) };
      return assignment;
    };
  }

  it('is what new targets of one namespace get, however many it has, and leaves the range to others', () => {
    const noisy = sequence(RANGE).map(n => `100.64.${n >> 8}.${n & 255}:53`);
    const wanted = [...wants('noisy', noisy, OLDER), ...wants('quiet', [ONE, TWO])];
    const { ports, missing } = assign(NONE, wanted, RANGE, { perNamespace: 1250 });
    expect(portsOf({ ports }, noisy)).toBe(1250);
    expect(portsOf({ ports }, [ONE, TWO])).toBe(2);
    const text =
      'the namespace has all of its 1250 relay ports: remove UDP endpoints, or raise meshPods.relayPortsPerNamespace (RELAY_PORTS_PER_NAMESPACE)';
    expect(new Set([...missing.values()].map(formatProblem))).toEqual(new Set([text]));
    expect(text.length).toBeLessThanOrEqual(256);
  });

  it('takes no port away when it gets smaller, nor after a restart', () => {
    const assignIn = assigned(10);
    const all = targets(10);
    const { ports } = assignIn(wants('apps', all));
    expect(assignIn(wants('apps', all), { perNamespace: 1 }).ports).toEqual(ports);
    const restarted = assignIn(wants('apps', all), { perNamespace: 1, owners: new Map() });
    expect(sorted(restarted.ports)).toEqual(sorted(ports));
    const { missing } = assignIn(wants('apps', [...all, THREE]), { perNamespace: 1 });
    expect([...missing.keys()]).toEqual([THREE]);
  });

  it('has room for a target of which another namespace has the port', () => {
    const assignIn = assigned(2);
    assignIn(wants('one', targets(2)));
    const wanted = [...wants('one', targets(2)), ...wants('two', targets(4), OLDER)];
    expect(portsOf(assignIn(wanted), targets(4))).toBe(4);
  });

  it('goes to the namespace that still wants a target, which keeps its port', () => {
    const assignIn = assigned(2);
    const { ports } = assignIn([...wants('one', [ONE], OLDER), ...wants('two', [ONE, TWO])]);
    expect(assignIn(wants('two', [ONE, TWO])).ports).toEqual(ports);
    expect(assignIn(wants('two', [ONE, TWO, THREE])).missing.has(THREE)).toBe(true);
  });

  it('does not grow by passing ports on to another namespace', () => {
    const assignIn = assigned(2);
    let hoard: readonly string[] = [];
    for (let round = 0; round < 5; round++) {
      const next = targets(2, 10 * round);
      assignIn([...wants('one', next, OLDER), ...wants('two', hoard)]);
      hoard = [...hoard, ...next];
      assignIn([...wants('one', next, OLDER), ...wants('two', hoard)]);
    }
    expect(portsOf(assignIn(wants('two', hoard)), hoard)).toBe(4);
  });

  it('does not grow where ports are passed on in a circle', () => {
    const assignIn = assigned(1);
    const [four = ''] = targets(1, 40);
    assignIn([...wants('one', [ONE]), ...wants('two', [TWO]), ...wants('three', [THREE])]);
    // The port of TWO is passed on to namespace one, to which that of ONE still counts.
    const passed = [...wants('one', [TWO], OLDER), ...wants('three', [ONE, THREE])];
    const { ports, missing } = assignIn([...passed, ...wants('two', [four])]);
    expect([ports.size, [...missing.keys()]]).toEqual([3, [four]]);
  });

  it('is no reason to take a port away that another namespace still wants', () => {
    const assignIn = assigned(2);
    const { ports } = assignIn([...wants('one', targets(2, 10)), ...wants('two', [ONE, TWO])]);
    assignIn([...wants('one', targets(2, 10)), ...wants('two', [ONE, TWO, ...targets(2, 10)])]);
    const after = assignIn(wants('two', [ONE, TWO, ...targets(2, 10)]));
    expect(sorted(after.ports)).toEqual(sorted(ports));
  });

  it('counts ports that are not free yet', () => {
    const { ports, owners } = assign(NONE, wants('noisy', targets(2)), RANGE, { perNamespace: 2 });
    const next = assign(inverted(ports), wants('noisy', targets(2, 10)), RANGE, { perNamespace: 2, owners });
    expect(next.ports.size).toBe(0);
    expect(assign(NONE, wants('noisy', targets(2, 10)), RANGE, { perNamespace: 2, ...next }).ports.size).toBe(
      2,
    );
  });

  it('is used up where a target has no port, and no wanted port is taken away, whatever others want and had', () => {
    const aShare = fc.integer({ min: 1, max: 6 });
    fc.assert(
      fc.property(fc.array(fc.array(aWanted), { maxLength: 8 }), aShare, (steps, perNamespace) => {
        const assignIn = assigned(perNamespace);
        let before: ReadonlyMap<string, number> = new Map();
        for (const wanted of steps) {
          assignIn(wanted);
          // By now ports of earlier targets are free.
          const { ports, missing, owners } = assignIn(wanted);
          for (const { target: name, namespace } of wanted) {
            const counted = [...owners.values()].filter(owner => owner === namespace).length;
            if (missing.has(name)) expect(counted).toBeGreaterThanOrEqual(perNamespace);
            if (before.has(name)) expect(ports.get(name)).toBe(before.get(name));
          }
          expect(ports.size).toBeLessThanOrEqual(3 * perNamespace);
          before = ports;
        }
      }),
    );
  });
});

function hashedPort(target: string): number {
  return assign(NONE, [want(target)], RANGE).ports.get(target) ?? 0;
}

const target = fc.nat(20).map(n => `100.64.0.${n}:53`);
const aWanted = fc.record({
  target,
  createdAt: fc.constantFrom(undefined, '2026-01-15T12:00:00Z', '2026-01-16T12:00:00Z'),
  namespace: fc.constantFrom('a', 'b', 'c'),
  name: fc.constantFrom('one', 'other'),
});
const aRange = fc
  .tuple(fc.integer({ min: 20_000, max: 20_010 }), fc.nat(12))
  .map(([first, more]): PortRange => ({ first, last: first + more }));
const aPrevious = fc
  .array(fc.tuple(fc.integer({ min: 19_995, max: 20_025 }), target), { maxLength: 30 })
  .map(entries => new Map(entries));

describe('any assignment of relay ports', () => {
  it('gives each wanted target a port of the range or a reason, and no port twice', () => {
    fc.assert(
      fc.property(aPrevious, fc.array(aWanted), aRange, (previous, wanted, range) => {
        const { ports, missing } = assign(previous, wanted, range);
        const targets = new Set(wanted.map(each => each.target));
        expect([...ports.keys(), ...missing.keys()].sort()).toEqual([...targets].sort());
        expect(new Set(ports.values()).size).toBe(ports.size);
        for (const port of ports.values()) expect(port >= range.first && port <= range.last).toBe(true);
      }),
    );
  });

  it('changes no port of the range, and gives none to another target', () => {
    fc.assert(
      fc.property(aPrevious, fc.array(aWanted), aRange, (previous, wanted, range) => {
        const { ports } = assign(previous, wanted, range);
        for (const [owner, port] of ports) {
          const had = [...previous].filter(
            ([at, of]) => of === owner && at >= range.first && at <= range.last,
          );
          if (had.length > 0) expect(had.map(([at]) => at)).toContain(port);
          else expect(previous.has(port)).toBe(false);
        }
      }),
    );
  });

  it('leaves a target without a port only while no port of the range is free', () => {
    fc.assert(
      fc.property(aPrevious, fc.array(aWanted), aRange, (previous, wanted, range) => {
        const { ports, missing } = assign(previous, wanted, range);
        const taken = new Set([...previous.keys(), ...ports.values()]);
        const free = sequence(range).filter(port => !taken.has(port));
        if (missing.size > 0) expect(free).toEqual([]);
      }),
    );
  });

  it('does not depend on the order of its input, and is not changed by a second pass', () => {
    fc.assert(
      fc.property(aPrevious, fc.array(aWanted), aRange, (previous, wanted, range) => {
        const { ports, missing } = assign(previous, wanted, range);
        const other = assign(new Map([...previous].reverse()), [...wanted].reverse(), range);
        expect(sorted(other.ports)).toEqual(sorted(ports));
        expect(sorted(other.missing)).toEqual(sorted(missing));
        if (missing.size > 0) return;
        expect(sorted(assign(inverted(ports), wanted, range).ports)).toEqual(sorted(ports));
      }),
    );
  });

  it('keeps its ports over any sequence of changes, as a model that never forgets a port', () => {
    const changes = fc.array(fc.array(aWanted, { maxLength: 12 }), { maxLength: 12 });
    fc.assert(
      fc.property(changes, aRange, (steps, range) => {
        let stored: ReadonlyMap<number, string> = NONE;
        let model = new Map<string, number>();
        for (const wanted of steps) {
          const { ports } = assign(stored, wanted, range);
          const targets = new Set(wanted.map(each => each.target));
          const kept = [...model].filter(([owner]) => targets.has(owner));
          for (const [owner, port] of kept) expect(ports.get(owner)).toBe(port);
          model = new Map(ports);
          stored = inverted(ports);
        }
      }),
    );
  });
});

function sequence({ first, last }: PortRange): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

function sorted<T>(map: ReadonlyMap<string, T>): readonly (readonly [string, T])[] {
  return [...map].sort(([one], [other]) => (one < other ? -1 : 1));
}

describe('a tailnet with many targets', () => {
  const wanted = sequence(RANGE).map(n => want(`100.64.${(n >> 8) & 255}.${n & 255}:${n}`));

  it('may use every port of the range', () => {
    const { ports, missing } = assign(NONE, wanted, RANGE);
    expect([ports.size, missing.size]).toEqual([10_000, 0]);
  });

  it('finds no more than 10,000 of a wider range in use, each namespace an eighth of them', () => {
    const range = { first: 10_000, last: 65_000 };
    const more = Array.from({ length: 10_001 }, (_, n) => want(`100.65.${n >> 8}.${n & 255}:53`));
    const { ports, missing } = assign(NONE, more, range);
    expect([ports.size, missing.size]).toEqual([10_000, 1]);
    expect([...missing.values()].map(formatProblem)).toEqual([
      'no relay port is left in 10000-65000, of which 10000 may be in use: divide UDP endpoints among MeshTailnets',
    ]);
    expect(planned({ wanted: more }, {}, { range, perNamespace: undefined }).ports.size).toBe(1250);
  });

  it('gets nearly the same ports where the assignment was lost', () => {
    const first = assign(NONE, wanted.slice(0, 600), RANGE).ports;
    const remaining = wanted.slice(100, 600);
    const kept = assign(inverted(first), remaining, RANGE).ports;
    const lost = assign(NONE, remaining, RANGE).ports;
    const moved = remaining.filter(each => kept.get(each.target) !== lost.get(each.target));
    expect(moved.length).toBeLessThan(15);
  });
});

/** Plans a tailnet whose ConfigMap has the port 20000 for a target that is still wanted. */
function planned(
  fields: Partial<Input> = {},
  before: Partial<PreviousPlan> = {},
  options: PlanOptions = { range: RANGE, perNamespace: Infinity },
) {
  const tailnet = resourceOf(named(meshTailnet(), 'example')) as Kinds['MeshTailnet'];
  const stored = `20000 ${ONE}\n`;
  return plan(
    {
      tailnet,
      wanted: [want(ONE)],
      front: frontInput(),
      storedFront: undefined,
      stored,
      pods: [],
      now: 1_000_000,
      serving: [],
      left: new Map(),
      services: '',
      storedServices: undefined,
      ...fields,
    },
    { ...NO_PLAN, appliedAt: 1_000_000, ...before },
    options,
  );
}

const LISTS = { callers: '10.0.0.1\n', destinations: `100.64.0.1 - 80\n` };
const LISTED = frontInput({
  callers: { addresses: ['10.0.0.1'], nodeAddresses: [] },
  destinations: declaredBy(['100.64.0.1 - 80']),
});

const LINE = `svc:web 443 mesh ${ONE} on\n`;

describe('the ConfigMap of a plan', () => {
  it('has VIP services beside the targets, and an empty text once it had some', () => {
    const data = (fields: Partial<Input>) => {
      const { action } = planned(fields);
      return action.do === 'apply' ? (action.object as { data?: object }).data : undefined;
    };
    const targets = `20000 ${ONE}\n`;
    expect(data({ services: LINE })).toEqual({ targets, services: LINE });
    expect(data({ storedServices: LINE })).toEqual({ targets, services: '' });
    expect(Object.keys(data({ stored: '' }) ?? {})).toEqual(['targets']);
  });

  it.each<[string, Partial<Input>, Partial<PreviousPlan>, string]>([
    ['is not applied where it has the targets', {}, {}, 'nothing'],
    ['is applied where its targets differ', { stored: `20001 ${TWO}\n` }, {}, 'apply'],
    ['is applied where it does not exist', { stored: undefined }, {}, 'apply'],
    ['is applied by a new process', {}, NO_PLAN, 'apply'],
    ['is applied where it lacks VIP services', { services: LINE }, {}, 'apply'],
    ['is not applied where it has them', { services: LINE, storedServices: LINE }, {}, 'nothing'],
    ['is applied where it has others', { storedServices: LINE }, {}, 'apply'],
    ['is not applied again for ten minutes', {}, { appliedAt: 400_001 }, 'nothing'],
    ['is applied again after ten minutes', {}, { appliedAt: 400_000 }, 'apply'],
    ['is applied where it lacks the lists of the front', { front: LISTED }, { appliedAt: 999_500 }, 'apply'],
    ['is not applied where it has them', { front: LISTED, storedFront: LISTS }, {}, 'nothing'],
    ['waits for half a second with them after a write', { front: LISTED }, { appliedAt: 999_501 }, 'wait'],
    ['does not wait with targets', { front: LISTED, stored: undefined }, { appliedAt: 999_501 }, 'apply'],
  ])('%s', (_, fields, before, expected) => {
    const { action, appliedAt } = planned(fields, before);
    expect(action.do).toBe(expected);
    expect(appliedAt).toBe(expected === 'apply' ? 1_000_000 : (before.appliedAt ?? 1_000_000));
  });
});

describe('a port that has lost its target', () => {
  const range = { first: 20_000, last: 20_000 };

  it.each<[string, number, number, readonly string[]]>([
    ['is not given to another one for ten seconds', 9999, 1_000_001, []],
    ['is free after ten seconds', 10_000, Infinity, [TWO]],
  ])('%s', (_, agoMs, retryAt, targets) => {
    const freed = new Map([[20_000, { target: ONE, at: 1_000_000 - agoMs }]]);
    const next = planned({ wanted: [want(TWO)], stored: '' }, { freed }, { range, perNamespace: Infinity });
    expect([...next.ports.keys()]).toEqual(targets);
    expect(next.retryAt).toBe(retryAt);
  });

  it('is kept from the time at which it lost it', () => {
    const { freed } = planned({ wanted: [] });
    expect([...freed]).toEqual([[20_000, { target: ONE, at: 1_000_000 }]]);
  });

  it('is kept from now on where the write that removes it has failed', () => {
    const freed = new Map([[20_000, { target: ONE, at: 991_000 }]]);
    const next = planned({ wanted: [] }, { freed });
    expect([...next.freed]).toEqual([[20_000, { target: ONE, at: 1_000_000 }]]);
  });
});
