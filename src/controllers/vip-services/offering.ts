import type { Clock } from '../../api/clock.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { refOf } from '../../api/key.ts';
import type { Ref } from '../../api/key.ts';
import { placeOf, refAt } from '../../api/objects/oldest.ts';
import { fullServiceName } from '../../api/served-services.ts';
import { inSlices } from '../../runtime/slices.ts';
import { Derived } from '../../store/derived.ts';
import { groupsFrom } from '../../store/groups.ts';
import type { Groups } from '../../store/groups.ts';
import { vipServicesByTailnet } from '../../store/indexes.ts';
import { isBeingDeleted } from '../../store/lifecycle.ts';
import type { TrackedRead, Tracking } from '../../store/tracking.ts';
import { isAllowed } from '../../traffic/permissions.ts';
import { listerOf } from './ledger.ts';
import type { Ledger, Lister, Listers } from './ledger.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];
type MeshTailnet = Kinds['MeshTailnet'];

/** Reads the MeshEndpoints that list VIP services of a MeshTailnet and may use it, in groups: few change at once. */
export type Users = {
  readonly groups: Groups;
  /** By the name of a MeshTailnet and the number of a group, with a space between. */
  readonly ofGroup: Derived<readonly MeshEndpoints[]>;
};

export function usersFrom(tracking: Tracking): Users {
  const tailnetAt = (name: string, { exceptStatus }: TrackedRead) =>
    exceptStatus.get({ kind: 'MeshTailnet', namespace: '', name });
  const groups = groupsFrom(tracking, ['MeshEndpoints', 'MeshTailnet'], (name, run) => {
    const tailnet = tailnetAt(name, run);
    return tailnet ? run.members(vipServicesByTailnet, tailnet.spec.tailnet) : [];
  });
  const reads = ['MeshEndpoints', 'MeshTailnet', 'Namespace'] as const;
  const ofGroup = new Derived<readonly MeshEndpoints[]>(tracking, reads, (place, run) => {
    const tailnet = tailnetAt(place.split(' ')[0] ?? '', run);
    if (!tailnet || isBeingDeleted(tailnet)) return [];
    const { exceptStatus: read } = run;
    const resources = { namespace: (name: string) => read.get({ kind: 'Namespace', namespace: '', name }) };
    return run.value(groups.keys, place).flatMap(key => {
      const object = read.get(refOf(key) as Ref<'MeshEndpoints'>);
      if (!object || isBeingDeleted(object)) return [];
      const { namespace = '' } = object.metadata;
      return isAllowed(resources, tailnet.spec.allowedNamespaces, namespace) ? [object] : [];
    });
  });
  return { groups, ofGroup };
}

/** The MeshEndpoints that list VIP services of a tailnet, and may use it. */
export type Offering = {
  /** By the name of the service. */
  readonly listers: Listers;
  /** The names that others list than when the ledger was settled; undefined where another one was, or none. */
  readonly changedSince: (ledger: Ledger) => ReadonlySet<string> | undefined;
  /** Notes that a ledger follows from these listers. */
  readonly settle: (ledger: Ledger) => void;
  /** The one at a place such as `default/web`. */
  readonly userAt: (place: string, read: TrackedRead) => MeshEndpoints | undefined;
};

/** Reads what the MeshEndpoints of a MeshTailnet list: what one of them lists is read again once its spec changes. */
export type ReadOffering = (tailnet: MeshTailnet, read: TrackedRead) => Promise<Offering>;

/** An object as it was read last. */
type User = { readonly lister: Lister; readonly spec: MeshEndpoints['spec'] };

/** A name that objects list, with `svc:` before it. */
type Listed = { readonly name: string; readonly all: Lister[] };

/** What was read of a tailnet. */
type Known = {
  readonly users: Map<string, User>;
  readonly listers: Map<string, readonly Lister[]>;
  /** By each spelling of the name: most objects list names that others list, too. */
  readonly names: Map<string, Listed>;
  /** The objects, by the number of their group. */
  groups: ReadonlyMap<number, readonly MeshEndpoints[]>;
  settled: Ledger | undefined;
  /** The names that others list since then. */
  readonly changed: Set<string>;
};

/** Creates a reader of one MeshTailnet that has read nothing yet. */
export function offeringReader(users: Users, clock: Pick<Clock, 'now' | 'soon'>): ReadOffering {
  const known: Known = {
    users: new Map(),
    listers: new Map(),
    names: new Map(),
    groups: new Map(),
    settled: undefined,
    changed: new Set(),
  };
  return async ({ metadata: { name } }, read) => {
    await inSlices(update(known, name, users, read), clock);
    return {
      listers: known.listers,
      changedSince: ledger => (ledger === known.settled ? known.changed : undefined),
      settle: ledger => {
        known.settled = ledger;
        known.changed.clear();
      },
      userAt: (place, { exceptStatus }) => {
        const object = exceptStatus.get(refAt('MeshEndpoints', place));
        return object && known.users.has(idOf(object)) ? object : undefined;
      },
    };
  };
}

function* update(known: Known, name: string, users: Users, read: TrackedRead): Generator<undefined> {
  const changes: UserChange[] = [];
  const groups = new Map<number, readonly MeshEndpoints[]>();
  for (const { at } of read.value(users.groups.of, name)) {
    const [before = [], after] = [known.groups.get(at), read.value(users.ofGroup, `${name} ${at}`)];
    groups.set(at, after);
    if (before === after) continue;
    changes.push(...changesOf(known, before, after));
    yield;
  }
  for (const [at, before] of known.groups) if (!groups.has(at)) changes.push(...changesOf(known, before, []));
  known.groups = groups;
  for (const change of changes.sort((a, b) => inOrder(a.after?.lister, b.after?.lister))) {
    apply(change, known);
    yield;
  }
}

/** A user that is new or has another spec, or one that left. */
type UserChange = {
  readonly id: string;
  readonly before: User | undefined;
  readonly after: User | undefined;
};

function changesOf(
  { users }: Known,
  old: readonly MeshEndpoints[],
  present: readonly MeshEndpoints[],
): readonly UserChange[] {
  const ids = new Set(present.map(idOf));
  const left = old.map(idOf).filter(id => !ids.has(id));
  const changed = present.filter(object => users.get(idOf(object))?.spec !== object.spec);
  return [
    ...left.map(id => ({ id, before: users.get(id), after: undefined })),
    ...changed.map(object => {
      const [id, { spec }] = [idOf(object), object];
      const known = users.get(id);
      return { id, before: known, after: { lister: known?.lister ?? listerOf(object), spec } };
    }),
  ];
}

function inOrder(one: Lister | undefined, other: Lister | undefined): number {
  if (!one || !other) return Number(one !== undefined) - Number(other !== undefined);
  return isBefore(one, other) ? -1 : 1;
}

/** The oldest is the first. */
function isBefore(one: Lister, other: Lister): boolean {
  return one.createdMs === other.createdMs ? one.place < other.place : one.createdMs < other.createdMs;
}

function apply({ id, before, after }: UserChange, known: Known): void {
  const old = new Set(before && namesIn(before, known));
  const present = new Set(after && namesIn(after, known));
  for (const name of old) if (before && !present.has(name)) remove(name, before.lister, known);
  for (const name of present) if (after && !old.has(name)) insert(name, after.lister, known);
  if (after) known.users.set(id, after);
  else known.users.delete(id);
}

function remove({ name, all }: Listed, lister: Lister, { listers, names, settled, changed }: Known): void {
  all.splice(all.indexOf(lister), 1);
  if (settled) changed.add(name);
  if (all.length > 0) return;
  listers.delete(name);
  for (const listed of spellingsOf(name)) names.delete(listed);
}

function insert({ name, all }: Listed, lister: Lister, { settled, changed }: Known): void {
  const last = all.at(-1);
  // At first they come in their order.
  if (!last || isBefore(last, lister)) all.push(lister);
  else all.splice(all.findLastIndex(other => isBefore(other, lister)) + 1, 0, lister);
  if (settled) changed.add(name);
}

/** The names that an object lists; those that no other lists are new. */
function namesIn({ spec }: User, { listers, names }: Known): readonly Listed[] {
  return (spec.serviceDiscovery?.vipServices ?? []).map(({ name: listed }) => {
    const known = names.get(listed);
    if (known) return known;
    const created: Listed = { name: fullServiceName(listed), all: [] };
    for (const spelling of spellingsOf(created.name)) names.set(spelling, created);
    listers.set(created.name, created.all);
    return created;
  });
}

function spellingsOf(name: string): readonly string[] {
  return [name, name.slice('svc:'.length)];
}

/** Whether an object lists VIP services of a tailnet. */
export function isOffered({ metadata }: MeshTailnet, { groups }: Users, read: TrackedRead): boolean {
  return read.value(groups.of, metadata.name).length > 0;
}

/** One that is deleted and created again is another one. */
function idOf(object: MeshEndpoints): string {
  return object.metadata.uid ?? placeOf(object);
}
