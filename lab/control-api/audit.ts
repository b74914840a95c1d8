import { authKeyFault } from './operations/keys.ts';
import type { State } from './state.ts';

/** A request in the log, without secrets. */
export type LoggedRequest = {
  readonly atMs: number;
  readonly method: string;
  readonly path: string;
  /** The route's name, or `unknown`. */
  readonly route: string;
  readonly status: number;
  /** The credential whose token came with it. */
  readonly credential: string;
  /** The scopes that the request required. */
  readonly scopes: readonly string[];
  readonly userAgent: string;
  readonly faults: readonly string[];
};

/** What a test may leave behind. */
export type AuditOptions = {
  /** The most calls in any 60 s, of all routes together. */
  readonly callsPerMinute?: number;
  /** Node IDs of devices that may stay. */
  readonly devices?: readonly string[];
  /** Names of services that may stay. */
  readonly services?: readonly string[];
};

/** What was left behind: a sentence for each device, key and service, and one for too many calls. */
export function findLeaks(
  state: State,
  requests: readonly LoggedRequest[],
  { callsPerMinute = Infinity, devices = [], services = [] }: AuditOptions,
): readonly string[] {
  const leakedDevices = state.devices
    .all()
    .filter(({ keyId, nodeId }) => keyId !== undefined && !devices.includes(nodeId))
    .map(({ name, nodeId }) => `leaked device: ${name} (${nodeId})`);
  const unusedKeys = state.keys
    .all()
    .filter(key => key.keyType === 'auth' && key.uses === 0 && authKeyFault(state, key) === undefined)
    .map(({ id, description }) => `unused key: ${id} "${description}"`);
  const orphans = state.services
    .all()
    .filter(({ name }) => state.createdServices.has(name) && !services.includes(name))
    .map(({ name }) => `orphan service: ${name}`);
  const most = mostInAMinute(requests.map(({ atMs }) => atMs));
  const tooMany =
    most > callsPerMinute ? [`too many calls: ${most} in a minute, allowed are ${callsPerMinute}`] : [];
  return [...leakedDevices, ...unusedKeys, ...orphans, ...tooMany];
}

/** The number of requests by route. */
export function countByRoute(requests: readonly LoggedRequest[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { route } of requests) counts[route] = (counts[route] ?? 0) + 1;
  return counts;
}

/** Replaces keys, tokens and JWTs in a text. */
export function redact(text: string): string {
  return text
    .replace(/\b(?:ts|hs)key-(\w+)-[\w-]+/g, '[redacted $1]')
    .replace(/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, '[redacted jwt]');
}

const MINUTE_MS = 60_000;

function mostInAMinute(times: readonly number[]): number {
  let most = 0;
  let first = 0;
  for (const [last, atMs] of times.entries()) {
    while ((times[first] ?? atMs) <= atMs - MINUTE_MS) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}
