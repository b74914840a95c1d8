import type { Clock } from '../../api/clock.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { placeOf, refAt } from '../../api/objects/oldest.ts';
import { fullServiceName } from '../../api/served-services.ts';
import { inSlices } from '../../runtime/slices.ts';
import { vipServicesByTailnet } from '../../store/indexes.ts';
import { isBeingDeleted } from '../../store/lifecycle.ts';
import type { ReadObjects } from '../../store/resources.ts';
import type { TrackedRead } from '../../store/tracking.ts';
import { isAllowed } from '../../traffic/permissions.ts';
import { listerOf } from './ledger.ts';
import type { Lister, Listers } from './ledger.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];
type MeshTailnet = Kinds['MeshTailnet'];

/** The MeshEndpoints that list VIP services of a tailnet, and may use it. */
export type Offering = {
  /** By the name of the service. */
  readonly listers: Listers;
  /** The one at a place such as `default/web`. */
  readonly userAt: (place: string, read: TrackedRead) => MeshEndpoints | undefined;
};

/** Reads what the MeshEndpoints of a MeshTailnet list: what one of them lists is read again once its spec changes. */
export type ReadOffering = (tailnet: MeshTailnet, read: TrackedRead) => Promise<Offering>;

/** An object as it was read last. */
type User = { readonly lister: Lister; readonly spec: MeshEndpoints['spec'] };

/** What was read of a tailnet. */
type Known = {
  readonly users: Map<string, User>;
  readonly listers: Map<string, Lister[]>;
  /** The objects, in the order of the store. */
  objects: readonly MeshEndpoints[];
};

/** Creates a reader of one MeshTailnet that has read nothing yet. */
export function offeringReader(clock: Pick<Clock, 'now' | 'soon'>): ReadOffering {
  const known: Known = { users: new Map(), listers: new Map(), objects: [] };
  return async (tailnet, read) => {
    await inSlices(update(known, usersOf(tailnet, read.exceptStatus)), clock);
    const userAt: Offering['userAt'] = (place, { exceptStatus }) => {
      const object = exceptStatus.get(refAt('MeshEndpoints', place));
      return object && known.users.has(idOf(object)) ? object : undefined;
    };
    return { listers: known.listers, userAt };
  };
}

function* update(known: Known, objects: readonly MeshEndpoints[]): Generator<undefined> {
  const changes = changesOf(known, objects);
  known.objects = objects;
  for (const change of changes) {
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
  { users, objects: before }: Known,
  after: readonly MeshEndpoints[],
): readonly UserChange[] {
  const [old, found] = withoutSameEnds(before, after);
  const present = found.filter(object => !isBeingDeleted(object));
  const ids = new Set(present.map(idOf));
  const left = old.map(idOf).filter(id => !ids.has(id));
  const changed = present.filter(object => users.get(idOf(object))?.spec !== object.spec);
  const changes = [
    ...left.map(id => ({ id, before: users.get(id), after: undefined })),
    ...changed.map(object => {
      const [id, { spec }] = [idOf(object), object];
      const known = users.get(id);
      return { id, before: known, after: { lister: known?.lister ?? listerOf(object), spec } };
    }),
  ];
  return changes.sort((a, b) => inOrder(a.after?.lister, b.after?.lister));
}

/** The store keeps the order of objects, so that one change leaves one of thousands to compare. */
function withoutSameEnds<T>(one: readonly T[], other: readonly T[]): readonly [readonly T[], readonly T[]] {
  const shorter = Math.min(one.length, other.length);
  let first = 0;
  while (first < shorter && one[first] === other[first]) first++;
  let last = 0;
  while (last < shorter - first && one.at(-1 - last) === other.at(-1 - last)) last++;
  return [one.slice(first, one.length - last), other.slice(first, other.length - last)];
}

function inOrder(one: Lister | undefined, other: Lister | undefined): number {
  if (!one || !other) return Number(one !== undefined) - Number(other !== undefined);
  return isBefore(one, other) ? -1 : 1;
}

/** The oldest is the first. */
function isBefore(one: Lister, other: Lister): boolean {
  return one.createdMs === other.createdMs ? one.place < other.place : one.createdMs < other.createdMs;
}

function apply({ id, before, after }: UserChange, { users, listers }: Known): void {
  const old = new Set(namesIn(before));
  const present = namesIn(after);
  if (before) {
    const kept = new Set(present);
    for (const name of old) if (!kept.has(name)) remove(listers, name, before.lister);
  }
  if (after) {
    for (const name of present) if (!old.has(name)) insert(listers, name, after.lister);
    users.set(id, after);
  } else users.delete(id);
}

function remove(listers: Known['listers'], name: string, lister: Lister): void {
  const all = listers.get(name) ?? [];
  if (all.length > 1) all.splice(all.indexOf(lister), 1);
  else listers.delete(name);
}

/** Unless it is there: an object may list a name twice. */
function insert(listers: Known['listers'], name: string, lister: Lister): void {
  const all = listers.get(name);
  if (!all) {
    listers.set(name, [lister]);
    return;
  }
  const at = all.findLastIndex(other => other === lister || isBefore(other, lister)) + 1;
  if (all[at - 1] !== lister) all.splice(at, 0, lister);
}

function namesIn(user: User | undefined): readonly string[] {
  return (user?.spec.serviceDiscovery?.vipServices ?? []).map(({ name }) => fullServiceName(name));
}

/** Whether an object lists VIP services of a tailnet. */
export function isOffered(tailnet: MeshTailnet, read: TrackedRead): boolean {
  const found = read.exceptStatus.find(vipServicesByTailnet, tailnet.spec.tailnet);
  return found.some(object => !isBeingDeleted(object));
}

/** Also those that are being deleted. */
function usersOf(tailnet: MeshTailnet, read: ReadObjects): readonly MeshEndpoints[] {
  if (isBeingDeleted(tailnet)) return [];
  const found = read.find(vipServicesByTailnet, tailnet.spec.tailnet);
  if (tailnet.spec.allowedNamespaces.from === 'All') return found;
  const resources = { namespace: (name: string) => read.get({ kind: 'Namespace', namespace: '', name }) };
  const allowed = new Map<string, boolean>();
  const mayUse = (namespace: string) => {
    const known = allowed.get(namespace) ?? isAllowed(resources, tailnet.spec.allowedNamespaces, namespace);
    allowed.set(namespace, known);
    return known;
  };
  return found.filter(object => mayUse(object.metadata.namespace ?? ''));
}

/** One that is deleted and created again is another one. */
function idOf(object: MeshEndpoints): string {
  return object.metadata.uid ?? placeOf(object);
}
