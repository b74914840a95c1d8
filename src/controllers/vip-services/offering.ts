import type { Clock } from '../../api/clock.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { placeOf, refAt } from '../../api/objects/oldest.ts';
import { fullServiceName } from '../../api/served-services.ts';
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

/** Reads what MeshEndpoints list, by the name of their MeshTailnet: what one of them lists is read again once its spec changes. */
export type ReadOffering = {
  readonly of: (tailnet: MeshTailnet, read: TrackedRead) => Promise<Offering>;
  readonly forget: (tailnet: string) => void;
};

/** An object as it was read last. */
type User = { readonly lister: Lister; readonly spec: MeshEndpoints['spec']; seenIn: number };

/** What was read of a tailnet. */
type Known = {
  readonly users: Map<string, User>;
  readonly listers: Map<string, Lister[]>;
  /** Counts the reads. */
  reads: number;
};

/** All objects may change at once, and each may list 100 names: after this time the event loop has a turn. */
const SLICE_MS = 5;

/** Creates a reader that has read nothing yet. */
export function offeringReader(clock: Pick<Clock, 'now' | 'soon'>): ReadOffering {
  const knownBy = new Map<string, Known>();
  return {
    of: async (tailnet, read) => {
      const { name } = tailnet.metadata;
      const known: Known = knownBy.get(name) ?? { users: new Map(), listers: new Map(), reads: 0 };
      knownBy.set(name, known);
      let sliceAt = clock.now();
      for (const change of changesOf(known, usersOf(tailnet, read.exceptStatus))) {
        apply(change, known);
        if (clock.now() - sliceAt < SLICE_MS) continue;
        await new Promise<void>(resolve => clock.soon(resolve));
        sliceAt = clock.now();
      }
      const userAt: Offering['userAt'] = (place, { exceptStatus }) => {
        const object = exceptStatus.get(refAt('MeshEndpoints', place));
        return object && known.users.has(idOf(object)) ? object : undefined;
      };
      return { listers: known.listers, userAt };
    },
    forget: tailnet => void knownBy.delete(tailnet),
  };
}

/** A user that is new or has another spec, or one that left. */
type UserChange = {
  readonly id: string;
  readonly before: User | undefined;
  readonly after: User | undefined;
};

function changesOf(known: Known, present: readonly MeshEndpoints[]): readonly UserChange[] {
  const { users } = known;
  const seenIn = ++known.reads;
  const changes: UserChange[] = [];
  let remained = 0;
  for (const object of present) {
    const id = idOf(object);
    const before = users.get(id);
    if (before) {
      remained++;
      before.seenIn = seenIn;
    }
    if (before?.spec === object.spec) continue;
    changes.push({ id, before, after: { lister: listerOf(object), spec: object.spec, seenIn } });
  }
  if (remained < users.size)
    for (const [id, before] of users)
      if (before.seenIn !== seenIn) changes.push({ id, before, after: undefined });
  return changes.length < 2 ? changes : changes.sort((a, b) => inOrder(a.after?.lister, b.after?.lister));
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
  const [old, present] = [namesIn(before), namesIn(after)];
  for (const name of old) {
    const others = listers.get(name) ?? [];
    if (before && after && present.has(name)) others[others.indexOf(before.lister)] = after.lister;
    else if (before && others.length > 1) others.splice(others.indexOf(before.lister), 1);
    else listers.delete(name);
  }
  for (const name of present) if (after && !old.has(name)) insert(listers, name, after.lister);
  if (after) users.set(id, after);
  else users.delete(id);
}

function insert(listers: Known['listers'], name: string, lister: Lister): void {
  const others = listers.get(name);
  const last = others?.at(-1);
  if (!others || !last) listers.set(name, [lister]);
  else if (isBefore(last, lister)) others.push(lister);
  else
    others.splice(
      others.findIndex(other => isBefore(lister, other)),
      0,
      lister,
    );
}

function namesIn(user: User | undefined): ReadonlySet<string> {
  return new Set(user?.spec.serviceDiscovery?.vipServices?.map(({ name }) => fullServiceName(name)));
}

/** Whether an object lists VIP services of a tailnet. */
export function isOffered(tailnet: MeshTailnet, read: TrackedRead): boolean {
  const found = read.exceptStatus.find(vipServicesByTailnet, tailnet.spec.tailnet);
  return found.some(object => !isBeingDeleted(object));
}

function usersOf(tailnet: MeshTailnet, read: ReadObjects): readonly MeshEndpoints[] {
  if (isBeingDeleted(tailnet)) return [];
  const resources = { namespace: (name: string) => read.get({ kind: 'Namespace', namespace: '', name }) };
  const allowed = new Map<string, boolean>();
  const mayUse = (namespace: string) => {
    const known = allowed.get(namespace) ?? isAllowed(resources, tailnet.spec.allowedNamespaces, namespace);
    allowed.set(namespace, known);
    return known;
  };
  return read
    .find(vipServicesByTailnet, tailnet.spec.tailnet)
    .filter(object => !isBeingDeleted(object) && mayUse(object.metadata.namespace ?? ''));
}

/** One that is deleted and created again is another one. */
function idOf(object: MeshEndpoints): string {
  return object.metadata.uid ?? placeOf(object);
}
