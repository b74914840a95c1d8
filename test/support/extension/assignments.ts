import type { EnvoyEndpoint, LoadAssignment } from '../../../src/traffic/endpoints/load-assignment.ts';
import { CLUSTER } from './clusters.ts';

/** An endpoint that is reached through a proxy by default. */
export function endpoint(more: Partial<EnvoyEndpoint> = {}): EnvoyEndpoint {
  return {
    address: '100.64.0.7',
    port: 8080,
    proxy: { address: '10.1.2.3', port: 1055 },
    weight: 1,
    health: 'UNKNOWN',
    healthCheckHost: 'web.example.ts.net',
    isHealthCheckDisabled: false,
    ...more,
  };
}

/** An endpoint that Envoy dials itself. */
export function direct(more: Partial<EnvoyEndpoint> = {}): EnvoyEndpoint {
  const { proxy: _, ...rest } = endpoint();
  return { ...rest, ...more };
}

/** Endpoints of every kind, of two backends. */
export function assignment(): LoadAssignment {
  return {
    cluster: CLUSTER,
    localities: [
      {
        backend: 0,
        weight: 90,
        priority: 0,
        endpoints: [
          endpoint(),
          endpoint({ address: '100.64.0.8', hostname: 'two.example.ts.net', health: 'HEALTHY', weight: 7 }),
          endpoint({ address: 'fd7a:115c:a1e0::9', health: 'UNHEALTHY', isHealthCheckDisabled: true }),
          endpoint({ address: '100.64.0.10', health: 'DRAINING', socketMatch: '0a1b' }),
        ],
      },
      { backend: 0, weight: 90, priority: 1, endpoints: [direct({ address: '100.64.0.11' })] },
      {
        backend: 2,
        weight: 10,
        priority: 0,
        endpoints: [direct({ address: '100.64.0.12', socketMatch: 'clear' })],
      },
    ],
  };
}
