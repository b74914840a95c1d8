import type { ResolvedRule } from './resolve-route.ts';
import { durationMs } from '../api/duration.ts';
import { isEqual } from '../api/json.ts';
import type { HealthCheck } from '../api/generated/types.ts';
import type { ResolvedEndpoint } from './resolve-backend-ref.ts';

/** The check of an endpoint, where it has one that is on. */
export function healthCheckOf({ endpoint: { healthCheck } }: ResolvedEndpoint): HealthCheck | undefined {
  return healthCheck?.enabled ? healthCheck : undefined;
}

/**
 * The checks that Envoy itself makes of a rule's endpoints: those on which all that are checked agree, and which Envoy
 * makes right. In a rule that is mixed it makes none, as it would check the backends of others in the same way.
 */
export function envoyHealthCheckOf({
  protocol,
  isMixed,
  backends,
}: ResolvedRule): EnvoyHealthCheck | undefined {
  if (isMixed) return undefined;
  let first: HealthCheck | undefined;
  for (const { endpoints } of backends) {
    for (const usable of endpoints) {
      const check = healthCheckOf(usable);
      if (!check) continue;
      if (!canEnvoyCheck(check, usable, protocol) || (first && !isSame(first, check))) return undefined;
      first ??= check;
    }
  }
  return first && toEnvoy(first);
}

/** Most checks of a rule are written alike; only where they are not, it matters what they mean. */
function isSame(a: HealthCheck, b: HealthCheck): boolean {
  return isEqual(a, b) || isEqual(toEnvoy(a), toEnvoy(b));
}

/**
 * Whether Envoy can make a check as the operator does. It checks through the socket of the cluster, so it cannot speak
 * HTTPS where traffic brings its own TLS; it asks gRPC services over HTTP/2 only; and it does not know Secrets.
 */
function canEnvoyCheck(
  check: HealthCheck,
  { endpoint, tls }: ResolvedEndpoint,
  protocol: ResolvedRule['protocol'],
): boolean {
  switch (check.type) {
    case 'HTTP':
      return !check.headersFrom?.length && (endpoint.protocol !== 'HTTPS' || tls !== undefined);
    case 'GRPC':
      return protocol === 'HTTP/2';
    case 'TCP':
      return protocol !== 'UDP';
    case 'UDP':
      return false;
  }
}

function toEnvoy(check: HealthCheck): EnvoyHealthCheck | undefined {
  const intervalMs = wholeMs(check.interval);
  const timeoutMs = Math.min(wholeMs(check.timeout), intervalMs);
  const { healthyThreshold, unhealthyThreshold } = check;
  const common = { intervalMs, timeoutMs, healthyThreshold, unhealthyThreshold };
  switch (check.type) {
    case 'HTTP': {
      const { path, expectedStatus } = check;
      return { ...common, is: 'HTTP', path, expectedStatus, headers: headersOf(check) };
    }
    case 'GRPC':
      return { ...common, is: 'GRPC', ...(check.service && { service: check.service }) };
    case 'TCP':
      return { ...common, is: 'TCP' };
    case 'UDP':
      return undefined;
  }
}

/** All but Host, which differs from endpoint to endpoint and is told with each. */
function headersOf({ headers = {} }: HealthCheck): readonly (readonly [string, string])[] {
  const others = Object.entries(headers).filter(([name]) => !isHost(name));
  return others.sort(([a], [b]) => (a < b ? -1 : 1));
}

/** The Host that checks of an endpoint name: the one that the user asks for, or its name in the tailnet. */
export function healthCheckHostOf(usable: ResolvedEndpoint): string {
  const headers = Object.entries(healthCheckOf(usable)?.headers ?? {});
  const [, host] = headers.find(([name]) => isHost(name)) ?? [];
  return host || usable.endpoint.meshFQDN;
}

function isHost(name: string): boolean {
  return name.toLowerCase() === 'host';
}

function wholeMs(duration: string): number {
  return Math.max(1, Math.round(durationMs(duration) ?? 0));
}

/** Envoy's own checks, where all checked endpoints agree in them. HTTP is spoken in the version of the cluster. */
export type EnvoyHealthCheck = {
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly healthyThreshold: number;
  readonly unhealthyThreshold: number;
} & (
  | {
      readonly is: 'HTTP';
      readonly path: string;
      readonly expectedStatus: number;
      /** Sorted by name. */
      readonly headers: readonly (readonly [name: string, value: string])[];
    }
  | { readonly is: 'TCP' }
  | { readonly is: 'GRPC'; readonly service?: string }
);
