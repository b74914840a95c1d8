import { ControlError } from '../../../control/control.ts';
import type { Device, TailnetView } from '../../../control/control.ts';
import { wasLoggedOut } from './join-failure.ts';
import { hasExpired, isReady } from './mesh-pods.ts';
import type { MeshPod } from './mesh-pods.ts';

/** A mesh pod without a usable identity, as lists of devices show it. */
type Missing = {
  /** Its device in the last list: missing from it, not in any list yet, or with a node key that has expired, as far as is known. */
  readonly inLists: 'missing' | 'unlisted' | 'expired';
  /** The time of the first list that showed it so. */
  readonly since: number;
  /** The time of the last one. */
  readonly listedAt: number;
  /** That its device no longer exists, or that its node key has expired; undefined while lists may be late. */
  readonly confirmed: 'removed' | 'expired' | undefined;
};

/** Mesh pods without a usable identity, by their names. */
export type MissingByPod = ReadonlyMap<string, Missing>;

/** The ids of devices that lists have shown, by the names of their mesh pods. */
export type ListedByPod = ReadonlyMap<string, string>;

/** Lists of a control API may be this late, and then lack a device that has just joined. */
const LATE_MS = 60_000;

export type MissingOptions = {
  readonly view: TailnetView | undefined;
  /** Of the last reconcile. */
  readonly before: MissingByPod;
  readonly listed: ListedByPod;
  readonly now: Date;
  /** Requests a device by its id. */
  readonly requestDevice: (id: string) => Promise<Device | undefined>;
};

/*
 * What a new list shows of a mesh pod whose key was used:
 *
 *   device that was listed before, missing       removed, if the device does not exist either
 *   device that was never listed                 the same after all lists of a minute
 *   no device, and no id of one, and not ready   removed after all lists of a minute
 *   node key of the device expired, not ready    expired, if it still is when the device is requested: a list may be older than its login
 *   meshd has left its state Running, not ready  the same, or removed if the device does not exist
 *
 * A control server need not log a device out that was removed: meshd then stays ready, and its connections hang. The pod shows no
 * sign of that: meshd stays in its state Running, with itself online and no health message.
 */

/** Finds the mesh pods without a usable identity; a list that is as old as the last one shows nothing new. */
export async function missingAfter(
  meshPods: readonly MeshPod[],
  options: MissingOptions,
): Promise<MissingByPod> {
  const { view, before, listed, now } = options;
  const listedAt = view?.isStale === false ? view.lastSuccess?.getTime() : undefined;
  if (view === undefined || listedAt === undefined) return before;
  const missing = new Map<string, Missing>();
  for (const meshPod of meshPods) {
    const inLists = inListsOf(meshPod, { view, listed, now });
    if (inLists === undefined) continue;
    const known = before.get(meshPod.name);
    if (known?.listedAt === listedAt && known.inLists === inLists) missing.set(meshPod.name, known);
    else {
      const since = known?.since ?? listedAt;
      const confirmed = await confirm({ meshPod, inLists, since, listedAt }, options);
      missing.set(meshPod.name, { inLists, since, listedAt, confirmed });
    }
  }
  return missing;
}

/** The names of mesh pods whose device is missing from the last list, or was removed; one that was never listed may just have joined. */
export function withMissingDevice(missing: MissingByPod): readonly string[] {
  const isMissing = ({ inLists, confirmed }: Missing) => inLists === 'missing' || confirmed === 'removed';
  return [...missing].flatMap(([name, each]) => (isMissing(each) ? [name] : []));
}

/** Whether the next list is wanted soon, because it may show that a device that was listed before no longer exists. */
export function isUrgent(missing: MissingByPod): boolean {
  return [...missing.values()].some(
    ({ inLists, confirmed }) => inLists === 'missing' && confirmed === undefined,
  );
}

/** With the devices that the last list shows. */
export function listedAfter(
  before: ListedByPod,
  meshPods: readonly MeshPod[],
  view: TailnetView | undefined,
): ListedByPod {
  const shown = meshPods.flatMap(({ name, device }) =>
    device && !view?.missing.has(device.id) ? [[name, device.id] as const] : [],
  );
  return new Map([...before, ...shown]);
}

type Lists = Pick<MissingOptions, 'listed' | 'now'> & { readonly view: TailnetView };

function inListsOf(meshPod: MeshPod, { view, listed, now }: Lists): Missing['inLists'] | undefined {
  const { name, secret, device } = meshPod;
  if (!secret || secret.hasKey) return undefined;
  // Requested by itself, it did not exist.
  if (!device && secret.deviceId !== undefined && secret.deviceId === listed.get(name)) return 'missing';
  if (!device) return secret.deviceId !== undefined || !isReady(meshPod) ? 'unlisted' : undefined;
  if (view.missing.has(device.id)) return 'missing';
  if (isReady(meshPod)) return undefined;
  return hasExpired(device, now) || wasLoggedOut(meshPod.pod) ? 'expired' : undefined;
}

type Unconfirmed = Omit<Missing, 'confirmed'> & { readonly meshPod: MeshPod };

async function confirm(
  { meshPod, inLists, since, listedAt }: Unconfirmed,
  { requestDevice, now }: MissingOptions,
): Promise<Missing['confirmed']> {
  // The clock may have been set back.
  if (inLists === 'unlisted' && Math.abs(listedAt - since) < LATE_MS) return undefined;
  const id = meshPod.device?.id ?? meshPod.secret?.deviceId;
  if (id === undefined) return 'removed';
  try {
    const device = await requestDevice(id);
    if (!device) return 'removed';
    return inLists === 'expired' && hasExpired(device, now) ? 'expired' : undefined;
  } catch (error) {
    if (error instanceof ControlError) return undefined;
    throw error;
  }
}
