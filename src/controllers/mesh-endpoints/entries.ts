import { createHash } from 'node:crypto';
import { inSeconds } from '../../api/clock.ts';
import type { EndpointStatus, Kinds } from '../../api/generated/types.ts';
import { isEqual } from '../../api/json.ts';
import type { Key } from '../../api/key.ts';
import { formatProblem } from '../../api/problem.ts';
import type { Why } from '../../api/problem.ts';
import { addressText } from '../../api/socket-address.ts';
import { cutText } from '../../api/text.ts';
import type { Verdict } from '../../health/health.ts';
import { writtenVerdict } from './checks.ts';
import type { EndpointProblem } from './inputs/inputs.ts';
import type { PlannedEndpoint } from './plan.ts';

/*
 * The entry of an endpoint in status.endpoints:
 *
 *   it cannot be used: a reference that is
 *   wrong, no address, or no relay port         Unhealthy, with the reason
 *   checks are off                              Healthy
 *   decided                                     as decided, with lastChecked
 *   never decided                               Unhealthy: not checked yet, or why it cannot be checked
 */
export function entryOf(
  { endpoint, origin, inputs, known, relayed, check }: PlannedEndpoint,
  verdict: Verdict | undefined,
): EndpointStatus {
  const { name, meshFQDN, protocol, port, externalTarget } = endpoint;
  const { addresses = [] } = inputs;
  const shown = {
    name,
    ...origin,
    address: addressText(endpoint),
    meshFQDN,
    protocol,
    port,
    ...(externalTarget !== undefined && { externalTarget }),
    ...(addresses.length > 0 && { resolvedAddresses: addresses }),
    ...(relayed && 'port' in relayed && { relayPort: relayed.port }),
  } as const;
  const hasNoAddress = externalTarget !== undefined && addresses.length === 0;
  const unusable =
    invalidReference(inputs.problem) ??
    (hasNoAddress ? (inputs.error ?? NOT_RESOLVED) : undefined) ??
    (relayed && 'reason' in relayed ? relayed : undefined);
  if (unusable) return { ...shown, status: 'Unhealthy', ...cutError(unusable) };
  const error = inputs.error ?? invalidReference(inputs.outdated);
  const warning = error ? cutError(error) : {};
  if (check.is === 'off') return { ...shown, status: 'Healthy', ...warning };
  const decided = (check.is === 'on' ? verdict : undefined) ?? writtenVerdict(known);
  if (decided?.lastChecked === undefined || decided.is === 'undecided') {
    return {
      ...shown,
      status: 'Unhealthy',
      ...cutError(check.is === 'impossible' ? check.problem : UNCHECKED),
    };
  }
  const lastChecked = inSeconds(decided.lastChecked);
  if (decided.is === 'healthy') return { ...shown, status: 'Healthy', lastChecked, ...warning };
  const failure = cutError({ reason: 'CheckFailed', text: decided.error });
  return { ...shown, status: 'Unhealthy', lastChecked, ...failure };
}

function invalidReference(why: Why | undefined): EndpointProblem | undefined {
  return why && { reason: 'InvalidReference', ...why };
}

/** Where no names are resolved. */
const NOT_RESOLVED: EndpointProblem = { reason: 'NotResolved', text: 'externalTarget is not resolved' };

const UNCHECKED: EndpointProblem = { reason: 'NotCheckedYet', text: 'not checked yet' };

function cutError(problem: EndpointProblem): Pick<EndpointStatus, 'reason' | 'error'> {
  return { reason: problem.reason, error: cutText(formatProblem(problem), MAX_ERROR_LENGTH) };
}

const MAX_ERROR_LENGTH = 256;

/** The entries, each as it was written where only the time of lastChecked differs. */
export function withoutNewTimes(
  entries: readonly EndpointStatus[],
  { status }: Kinds['MeshEndpoints'],
): readonly EndpointStatus[] {
  const before = new Map(status?.endpoints?.map(entry => [entry.name, entry]));
  return entries.map(entry => {
    const written = before.get(entry.name);
    return written && isEqual(stable(written), stable(entry)) ? written : entry;
  });
}

function stable({ lastChecked, ...rest }: EndpointStatus): object {
  return { ...rest, isChecked: lastChecked !== undefined };
}

/** The shortest time between two writes of an object that only refresh lastChecked and lastSync. */
const REFRESH_MS = 600_000;

/** The times in a status that are no reason to write it. */
type Times = Pick<NonNullable<Kinds['MeshEndpoints']['status']>, 'endpoints' | 'discovery'>;

/** Whether the newest time of a check or a list is 10 to 15 minutes, by object, after the newest one that was written. */
export function isRefreshDue(key: Key, now: Times, { status }: Kinds['MeshEndpoints']): boolean {
  const spreadMs = createHash('sha256').update(key).digest().readUInt32BE() % (REFRESH_MS / 2);
  return newestMs(now) - newestMs(status ?? {}) >= REFRESH_MS + spreadMs;
}

function newestMs({ endpoints = [], discovery }: Times): number {
  const times = [discovery?.lastSync, ...endpoints.map(({ lastChecked }) => lastChecked)];
  return Math.max(...times.map(time => (time === undefined ? 0 : Date.parse(time))));
}
