import { poolName } from '../../../api/names.ts';
import type { Device } from '../../../control/control.ts';

/** What decides which devices are orphans; all of it as of the same list. */
export type SweepInput = {
  /** Of the last list that succeeded. */
  readonly devices: readonly Device[];
  /** The time of that list. */
  readonly listedAt: Date;
  /** The installation id. */
  readonly installation: string;
  /** Those of the MeshTailnet. */
  readonly tags: readonly string[];
  /** The names of the other MeshTailnets, which sweep their own devices. */
  readonly others: readonly string[];
  /** Everything with a Secret, because that may hold the identity of a device. */
  readonly meshPods: readonly SweptPod[];
  /** How long a device is an orphan before it is deleted. */
  readonly minAgeMs?: number;
};

/** A mesh pod of the pool. */
type SweptPod = {
  readonly hostname: string;
  /** Undefined while it joins. */
  readonly deviceId: string | undefined;
};

/** The orphans of the last list. It may be lost: orphans are then deleted later. */
export type OrphanMemory = {
  readonly listedAt: Date | undefined;
  readonly orphans: ReadonlyMap<string, OrphanAge>;
};

/** How long a device has been an orphan without a break. */
type OrphanAge = { readonly since: Date; readonly lists: number };

/** The outcome of a sweep. */
export type Sweep = {
  readonly memory: OrphanMemory;
  /** Devices of this installation, orphans among them. */
  readonly managed: number;
  /** All orphans; `memory` has the same. */
  readonly orphaned: number;
  /** Orphans that the last list did not have. */
  readonly found: readonly Device[];
  /** Orphans to be deleted now. */
  readonly remove: readonly Device[];
};

/** Before the first list. */
export const NO_ORPHANS: OrphanMemory = { listedAt: undefined, orphans: new Map() };

const MIN_AGE_MS = 600_000;
const MIN_LISTS = 3;

/** Deletions share the rate limit with the lists; the rest follows with the next reconcile. */
const MAX_REMOVED = 10;

/*
 * A device is of this installation if its hostname is meshd-<name>-<ordinal>-<installation id>, it has a tag of the
 * MeshTailnet, and it is not shared in from another tailnet. What is done with such a device:
 *
 *   online                                      nothing: it may carry traffic
 *   of another MeshTailnet that exists          nothing: that one sweeps it
 *   its id is in the Secret of a mesh pod         nothing: it is the device of that mesh pod
 *   its hostname is that of a joining mesh pod    nothing: meshd writes the id once it has joined
 *   else, an orphan                             reported; deleted after 3 lists in a row and 10 minutes
 *
 * Each device chooses its own hostname, so any device of the tailnet can claim one of these; but only the owners of a
 * tag can assign it. An owner of our tags who gives a device such a hostname has that device deleted once it is offline, and
 * achieves nothing else: the device of another cannot be made an orphan, because only that device can change its hostname.
 */

/**
 * Finds the devices of this installation that belong to no mesh pod. Only lists count, not reconciles: two with the same list
 * find nothing new, and without new lists no orphan becomes old enough, so one that came online is not deleted.
 */
export function sweep(memory: OrphanMemory, input: SweepInput): Sweep {
  const { devices, listedAt, installation, tags, minAgeMs = MIN_AGE_MS } = input;
  const isNewList = memory.listedAt?.getTime() !== listedAt.getTime();
  const managed = devices.filter(device => isOf(installation, tags, device));
  const orphans = managed.filter(device => isOrphan(device, input));
  const candidates = orphans.map(device => {
    const { since, lists } = memory.orphans.get(device.id) ?? { since: listedAt, lists: 0 };
    const isCounted = isNewList || !memory.orphans.has(device.id);
    return { device, since, lists: isCounted ? lists + 1 : lists };
  });
  const remove = candidates
    .filter(({ since, lists }) => lists >= MIN_LISTS && listedAt.getTime() - since.getTime() >= minAgeMs)
    .slice(0, MAX_REMOVED)
    .map(({ device }) => device);
  // A deletion that fails is repeated after as long again.
  const next = candidates.map(({ device: { id }, since, lists }): [string, OrphanAge] => [
    id,
    remove.some(device => device.id === id) ? { since: listedAt, lists: 0 } : { since, lists },
  ]);
  return {
    memory: { listedAt, orphans: new Map(next) },
    managed: managed.length,
    orphaned: orphans.length,
    found: orphans.filter(({ id }) => !memory.orphans.has(id)),
    remove,
  };
}

function isOrphan({ id, hostname, isOnline }: Device, input: SweepInput): boolean {
  if (isOnline) return false;
  const name = tailnetIn(hostname, input.installation);
  if (input.others.some(other => other === name)) return false;
  return !input.meshPods.some(({ deviceId, ...meshPod }) =>
    deviceId === undefined ? meshPod.hostname === hostname : deviceId === id,
  );
}

function isOf(installation: string, ownTags: readonly string[], device: Device): boolean {
  const { hostname, tags, isExternal } = device;
  return (
    !isExternal && tailnetIn(hostname, installation) !== undefined && tags.some(tag => ownTags.includes(tag))
  );
}

/** The name of the MeshTailnet that the hostname of a device of an installation has in it. */
function tailnetIn(hostname: string, installation: string): string | undefined {
  const [prefix, suffix] = [poolName(''), `-${installation}`];
  if (!hostname.startsWith(prefix) || !hostname.endsWith(suffix)) return undefined;
  return /^(.+)-\d{1,3}$/.exec(hostname.slice(prefix.length, -suffix.length))?.[1];
}
