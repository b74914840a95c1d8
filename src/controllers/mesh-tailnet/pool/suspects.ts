import { ControlError } from '../../../control/control.ts';
import type { Device, TailnetView } from '../../../control/control.ts';
import { hasExpired, isReady } from './members.ts';
import type { MeshPod } from './members.ts';

/** Why a member has no usable identity: its device no longer exists, or the node key of its device has expired. */
type Loss = 'removed' | 'expired';

/** What lists of devices show of a member without a usable identity: its device is missing, was never listed, or has expired. */
type Sign = 'missing' | 'unlisted' | 'expired';

type Suspect = {
  /** In the last list. */
  readonly sign: Sign;
  /** The time of the first list that showed it so. */
  readonly since: number;
  /** The time of the last one. */
  readonly listedAt: number;
  /** Decided with the last one. */
  readonly loss: Loss | undefined;
};

/** Suspects by the names of their pods. */
export type Suspects = ReadonlyMap<string, Suspect>;

/** A device that was listed before is missing from this number of lists in a row before it is requested. */
const LISTS = 3;

/** Lists of a control API may be this late, so that they lack a device that has just joined. */
const LATE_MS = 60_000;

export type SuspectOptions = {
  readonly view: TailnetView | undefined;
  /** Of the last pass. */
  readonly before: Suspects;
  readonly now: Date;
  /** Requests a device by its id. */
  readonly requestDevice: (id: string) => Promise<Device | undefined>;
};

/*
 * What a new list shows of a member whose key was used:
 *
 *   device that was listed before, missing       lost after 3 lists in a row, if the device does not exist either
 *   device that was never listed                 the same after all lists of a minute
 *   no device, and no id of one, and not ready   lost after all lists of a minute
 *   node key of the device expired, not ready    lost after 2 lists: the first may be older than its login
 *
 * A control server need not log a device out that was removed: meshd then stays ready, and its connections hang. The pod shows no
 * sign of that: meshd stays in its state Running, with itself online and no health message.
 */

/** Finds the members without a usable identity; a list that is as old as the last one shows nothing new. */
export async function suspectsAfter(members: readonly MeshPod[], options: SuspectOptions): Promise<Suspects> {
  const { view, before, now } = options;
  const listedAt = view?.isStale === false ? view.lastSuccess?.getTime() : undefined;
  if (view === undefined || listedAt === undefined) return before;
  const suspects = new Map<string, Suspect>();
  for (const member of members) {
    const sign = signOf(member, view, now);
    if (sign === undefined) continue;
    const known = before.get(member.name);
    if (known?.listedAt === listedAt) suspects.set(member.name, known);
    else {
      const since = known?.since ?? listedAt;
      const loss = await lossOf({ member, sign, since, listedAt, view }, options);
      suspects.set(member.name, { sign, since, listedAt, loss });
    }
  }
  return suspects;
}

/** The names of members whose device is missing from the last list, or was removed; one that was never listed may just have joined. */
export function missingIn(suspects: Suspects): readonly string[] {
  const isMissing = ({ sign, loss }: Suspect) => sign === 'missing' || loss === 'removed';
  return [...suspects].flatMap(([name, suspect]) => (isMissing(suspect) ? [name] : []));
}

/** Whether the next list is wanted soon, because it may show that a device that was listed before no longer exists. */
export function isUrgent(suspects: Suspects): boolean {
  return [...suspects.values()].some(({ sign, loss }) => sign === 'missing' && loss === undefined);
}

function signOf(member: MeshPod, view: TailnetView, now: Date): Sign | undefined {
  const { secret, device } = member;
  if (!secret || secret.hasKey) return undefined;
  if (!device) return secret.deviceId !== undefined || !isReady(member) ? 'unlisted' : undefined;
  if (view.missing.has(device.id)) return 'missing';
  return hasExpired(device, now) && !isReady(member) ? 'expired' : undefined;
}

type Found = {
  readonly member: MeshPod;
  readonly sign: Sign;
  readonly since: number;
  readonly listedAt: number;
  readonly view: TailnetView;
};

async function lossOf(found: Found, { requestDevice }: SuspectOptions): Promise<Loss | undefined> {
  const { member, sign, since, listedAt, view } = found;
  if (sign === 'expired') return listedAt === since ? undefined : 'expired';
  const id = member.device?.id ?? member.secret?.deviceId;
  const isAbsent =
    sign === 'missing'
      ? (view.missing.get(id ?? '') ?? 0) >= LISTS
      : // The clock may have been set back.
        Math.abs(listedAt - since) >= LATE_MS;
  if (!isAbsent) return undefined;
  if (id === undefined) return 'removed';
  try {
    return (await requestDevice(id)) ? undefined : 'removed';
  } catch (error) {
    if (error instanceof ControlError) return undefined;
    throw error;
  }
}
