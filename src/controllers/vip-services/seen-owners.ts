import type { VipService } from '../../control/control.ts';
import { HELD_MS } from './ledger.ts';
import { ownersOf } from './owners.ts';
import type { Owner } from './owners.ts';

/** An owner that a service had when the services were listed. */
export type SeenOwner = {
  readonly owner: Owner;
  /** Whether it decided who else may join. */
  readonly isFirst: boolean;
  /** The time of day of the last list that had it. */
  readonly at: number;
};

/** The owners of claimed services, by the service: also those whose entry is missing for less than ten minutes. */
export type SeenOwners = ReadonlyMap<string, readonly SeenOwner[]>;

/** What was seen with another list. An owner that leaves marks itself before, so that it is not missed. */
export function seenAfter(
  before: SeenOwners,
  services: readonly VipService[],
  { names, now }: { readonly names: Iterable<string>; readonly now: number },
): SeenOwners {
  const byName = new Map(services.map(service => [service.name, service]));
  const after = new Map<string, readonly SeenOwner[]>();
  for (const name of names) {
    const owners = ownersOf(byName.get(name));
    const present = new Set(owners.map(({ installation }) => installation));
    const missing = (before.get(name) ?? []).filter(
      ({ owner, at }) => !present.has(owner.installation) && Math.abs(now - at) < HELD_MS,
    );
    const active = owners.filter(({ leaving }) => !leaving);
    const seen = active.map((owner, index) => ({ owner, isFirst: index === 0, at: now }));
    if (seen.length + missing.length > 0) after.set(name, [...seen, ...missing]);
  }
  return after;
}
