import { durationMs } from '../../api/duration.ts';
import { isEqual } from '../../api/json.ts';
import type { HealthCheck, MeshEndpoint } from '../../api/generated/types.ts';
import type { ResolvedEndpoint } from '../resolve-backend-ref.ts';
import type { ResolvedRule } from '../resolve-route.ts';
import { servesTls } from '../upstream-protocol.ts';
import { formatBackend } from './backend-text.ts';

type CheckTimes = {
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly healthyThreshold: number;
  readonly unhealthyThreshold: number;
};

/** The active health check of an Envoy cluster. HTTP is spoken in the version of the cluster. */
export type EnvoyHealthCheck = CheckTimes &
  (
    | {
        readonly type: 'HTTP';
        readonly path: string;
        readonly expectedStatus: number;
        /** Sorted by name. */
        readonly headers: readonly (readonly [name: string, value: string])[];
      }
    | { readonly type: 'TCP' }
    | { readonly type: 'GRPC'; readonly service?: string }
  );

/** A health check with the type that it has where none is written. */
export type TypedCheck = HealthCheck & Required<Pick<HealthCheck, 'type'>>;

/** The health check of an endpoint, if enabled. */
export function healthCheckOf({
  endpoint: { healthCheck, protocol },
}: Pick<ResolvedEndpoint, 'endpoint'>): TypedCheck | undefined {
  if (!healthCheck?.enabled) return undefined;
  const { type } = healthCheck;
  return type === undefined ? { ...healthCheck, type: TYPES[protocol] ?? 'HTTP' } : { ...healthCheck, type };
}

/** The types of checks of protocols that cannot carry HTTP. */
const TYPES: Readonly<Partial<Record<MeshEndpoint['protocol'], TypedCheck['type']>>> = {
  gRPC: 'GRPC',
  UDP: 'UDP',
};

/** The texts of the backends of a rule that have endpoints with a health check, each once. */
export function backendsWithChecks({ backends }: Pick<ResolvedRule, 'backends'>): readonly string[] {
  const checked = backends.filter(({ endpoints }) => endpoints.some(healthCheckOf));
  return [...new Set(checked.map(({ ref }) => formatBackend(ref)))];
}

/**
 * The active health check of a rule's cluster: that of all checked endpoints, if they are equal but for Host and Envoy
 * supports it. A mixed rule has none, because Envoy would check the Services with it too.
 */
export function envoyHealthCheckOf({
  protocol,
  isMixed,
  backends,
}: ResolvedRule): EnvoyHealthCheck | undefined {
  if (isMixed) return undefined;
  let first: TypedCheck | undefined;
  for (const resolved of backends.flatMap(({ endpoints }) => endpoints)) {
    const check = healthCheckOf(resolved);
    if (!check) continue;
    if (!canEnvoyCheck(check, resolved, protocol) || (first && !isSame(first, check))) return undefined;
    first ??= check;
  }
  return first && toEnvoy(first);
}

/** Compares the checks as written first, because most checks of a rule are written alike. */
function isSame(a: TypedCheck, b: TypedCheck): boolean {
  return isEqual(a, b) || isEqual(toEnvoy(a), toEnvoy(b));
}

/**
 * Whether Envoy can make the check that the operator makes. Envoy checks through the transport socket of the endpoint, so
 * it cannot send HTTP in TLS where it passes TLS through; it checks gRPC over HTTP/2 only; and it cannot read Secrets.
 */
function canEnvoyCheck(
  check: TypedCheck,
  { endpoint, tls }: ResolvedEndpoint,
  protocol: ResolvedRule['protocol'],
): boolean {
  switch (check.type) {
    case 'HTTP':
      return !check.headersFrom?.length && (!servesTls(endpoint) || tls !== undefined);
    case 'GRPC':
      return protocol === 'HTTP/2';
    case 'TCP':
      return protocol !== 'UDP';
    case 'UDP':
      return false;
  }
}

function toEnvoy(check: TypedCheck): EnvoyHealthCheck | undefined {
  const common = timesOf(check);
  switch (check.type) {
    case 'HTTP': {
      const { path, expectedStatus } = check;
      const { headers } = splitHost(Object.entries(check.headers ?? {}));
      return { ...common, type: 'HTTP', path, expectedStatus, headers };
    }
    case 'GRPC':
      return { ...common, type: 'GRPC', ...(check.service && { service: check.service }) };
    case 'TCP':
      return { ...common, type: 'TCP' };
    case 'UDP':
      return undefined;
  }
}

/** The times and thresholds of a check; the timeout is cut to the interval. */
export function timesOf(check: HealthCheck): CheckTimes {
  const { interval, timeout, healthyThreshold, unhealthyThreshold } = check;
  const intervalMs = wholeMs(interval);
  const timeoutMs = Math.min(wholeMs(timeout), intervalMs);
  return { intervalMs, timeoutMs, healthyThreshold, unhealthyThreshold };
}

function wholeMs(duration: string): number {
  return Math.max(1, Math.round(durationMs(duration) ?? 0));
}

type Headers = readonly (readonly [name: string, value: string])[];

/** The first Host among the headers of a check, which each endpoint has for itself in EDS, and the others, sorted by name. */
export function splitHost(headers: Headers): {
  readonly host: string | undefined;
  readonly headers: Headers;
} {
  const [, host] = headers.find(([name]) => isHost(name)) ?? [];
  const others = headers.filter(([name]) => !isHost(name));
  return { host, headers: others.sort(([a], [b]) => (a < b ? -1 : 1)) };
}

function isHost(name: string): boolean {
  return name.toLowerCase() === 'host';
}

/** The Host of an endpoint's health check: the header of that name, or meshFQDN. */
export function healthCheckHostOf(resolved: Pick<ResolvedEndpoint, 'endpoint'>): string {
  const { host } = splitHost(Object.entries(healthCheckOf(resolved)?.headers ?? {}));
  return host || resolved.endpoint.meshFQDN;
}
