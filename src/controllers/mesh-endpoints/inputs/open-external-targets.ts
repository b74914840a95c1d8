import type { Clock } from '../../../api/clock.ts';
import type { AddressGuard } from '../../../traffic/address-guard.ts';
import type { ExternalTargets } from './external-targets.ts';
import { createLookup } from './lookup.ts';
import { createResolver } from './resolver.ts';

/** A server that does not answer is queried again once. */
const LOOKUP = { timeoutMs: 2000, tries: 2 } as const;

/** Resolves externalTargets with the DNS servers of the system. */
export function openExternalTargets(deps: {
  readonly clock: Clock;
  readonly guard: AddressGuard;
}): ExternalTargets {
  return createResolver({ ...deps, lookup: createLookup(LOOKUP) });
}
