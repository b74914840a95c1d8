import type { Clock } from '../../api/clock.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { refAt } from '../../api/objects/oldest.ts';
import type { Published } from '../../runtime/published.ts';
import { inSlices } from '../../runtime/slices.ts';
import { isBeingDeleted } from '../../store/lifecycle.ts';
import type { TrackedRead } from '../../store/tracking.ts';
import type { Connection } from './connection.ts';
import { registrantsOf } from './gather.ts';
import type { Offering } from './offering.ts';
import { departureOf, nextLedger } from './ledger.ts';
import type { Ledger } from './ledger.ts';
import type { LedgerStore } from './ledger-store.ts';

type MeshTailnet = Kinds['MeshTailnet'];

type HoldOptions = {
  readonly offering: Offering;
  /** Undefined where there is no ledger yet. */
  readonly stored: Ledger | undefined;
  /** Undefined where nothing is listed, and nothing of this installation may exist in the tailnet. */
  readonly connection: Connection | undefined;
  readonly read: TrackedRead;
};

type HoldDeps = {
  readonly ledgers: LedgerStore;
  /** The departures of names that no mesh pod serves, by the name. */
  readonly unserved: Pick<Published<ReadonlyMap<string, string>>, 'of'>;
  /** How many names a tailnet may have. */
  readonly maxVipServices: number;
  readonly clock: Pick<Clock, 'now' | 'soon'>;
  /** The time of day. */
  readonly now: () => Date;
};

/** Who has which name, once that is stored: nothing is registered or served before. */
export async function holdNames(
  tailnet: MeshTailnet,
  { offering, stored, connection, read }: HoldOptions,
  { ledgers, unserved, maxVipServices, clock, now }: HoldDeps,
): Promise<Ledger> {
  const { tailnet: domain, pool } = tailnet.spec;
  // Their mesh pods end, and proxies that others run serve none.
  const isNeverServed = isBeingDeleted(tailnet) || pool.mode !== 'Managed';
  const departures = unserved.of(tailnet.metadata.name);
  const work = nextLedger({
    before: stored ?? new Map(),
    listers: offering.listers,
    exists: place => {
      const object = read.exceptStatus.get(refAt('MeshEndpoints', place));
      return object !== undefined && !isBeingDeleted(object);
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
  if (ledger.size === 0 && !connection) {
    if (stored) await ledgers.remove(domain);
  } else await ledgers.write(tailnet, ledger);
  return ledger;
}
