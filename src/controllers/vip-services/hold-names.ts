import type { Clock } from '../../api/clock.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { vipServicesIn } from '../../api/objects/endpoints.ts';
import { refAt } from '../../api/objects/oldest.ts';
import { fullServiceName } from '../../api/served-services.ts';
import type { Published } from '../../runtime/published.ts';
import { inSlices } from '../../runtime/slices.ts';
import { isBeingDeleted } from '../../store/lifecycle.ts';
import type { TrackedRead } from '../../store/tracking.ts';
import type { Connection } from './connection.ts';
import { registrantsOf } from './gather.ts';
import type { Offering } from './offering.ts';
import { departureOf, nextLedger } from './ledger.ts';
import type { Holder, Ledger } from './ledger.ts';

type MeshTailnet = Kinds['MeshTailnet'];

export type HoldOptions = {
  readonly offering: Offering;
  /** Undefined where there is no ledger yet. */
  readonly stored: Ledger | undefined;
  /** Undefined where nothing is listed, and nothing of this installation may exist in the tailnet. */
  readonly connection: Connection | undefined;
};

type HoldDeps = {
  /** The departures of names that no mesh pod serves, by the name. */
  readonly unserved: Pick<Published<ReadonlyMap<string, string>>, 'of'>;
  /** How many names a tailnet may have. */
  readonly maxVipServices: number;
  readonly clock: Pick<Clock, 'now' | 'soon'>;
  /** The time of day. */
  readonly now: () => Date;
};

/**
 * Plans who has which name. Undefined while that is not known: without a ledger, who has registered which service decides, and
 * services cannot be listed.
 */
export async function planLedger(
  tailnet: MeshTailnet,
  { offering, stored, connection }: HoldOptions,
  read: TrackedRead,
  { unserved, maxVipServices, clock, now }: HoldDeps,
): Promise<Ledger | undefined> {
  if (!stored && connection?.is === 'unusable') return undefined;
  // Their mesh pods end, and proxies that others run serve none.
  const isNeverServed = isBeingDeleted(tailnet) || tailnet.spec.pool.mode !== 'Managed';
  const departures = unserved.of(tailnet.metadata.name);
  const before = stored ?? new Map<string, Holder>();
  const work = nextLedger({
    before,
    listers: offering.listers,
    changed: offering.changedSince(before),
    hasDropped: (place, name) => {
      const object = read.exceptStatus.get(refAt('MeshEndpoints', place));
      if (!object || isBeingDeleted(object)) return false;
      const isListed = vipServicesIn(object).some(listed => fullServiceName(listed.name) === name);
      return !isListed || object.spec.tailnet !== tailnet.spec.tailnet;
    },
    isUnserved: (name, holder) => isNeverServed || departures?.get(name) === departureOf(holder),
    registrants:
      stored || connection?.is !== 'usable'
        ? new Map()
        : registrantsOf(connection.services, connection.installation),
    maxNames: maxVipServices,
    now: now(),
  });
  const ledger = await inSlices(work, clock);
  offering.settle(ledger);
  return ledger;
}
