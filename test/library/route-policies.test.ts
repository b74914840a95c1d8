import { describe, expect, it } from 'vitest';
import {
  AuthoringError,
  backend,
  httpRoute,
  meshEndpoints,
  meshRoutePolicy,
  tcpRoute,
  validate,
} from '../../src/index.ts';

/** The library without its types, as JavaScript programs use it. */
const untyped = meshRoutePolicy as (props: unknown) => unknown;

const metadata = { name: 'web', namespace: 'shop' };
const home = meshEndpoints({
  metadata: { name: 'web-home', namespace: 'shop' },
  tailnet: 'example.ts.net',
  endpoints: [1, 2].map(at => ({
    ...{ name: `web-${at}`, meshIP: `100.64.0.${at}`, meshFQDN: `web-${at}.example.ts.net` },
    ...{ port: 8080 + at, protocol: 'HTTP' as const },
  })),
});
const route = httpRoute({
  metadata,
  parentRefs: 'public',
  rules: [
    { name: 'checkout', backendRefs: [backend(home, 8081), backend(home, 8082)] },
    {
      backendRefs: [
        { name: 'shop', port: 80 },
        { name: 'shop', port: 81 },
      ],
    },
  ],
});
const GATEWAY_API = 'gateway.networking.k8s.io';
const HOME = { group: 'mesh-gateway.dev', kind: 'MeshEndpoints', name: 'web-home' };

function faultsOf(make: () => unknown): readonly string[] {
  try {
    make();
    return [];
  } catch (error) {
    if (error instanceof AuthoringError)
      return error.faults.map(({ path, message }) => `${path}: ${message}`);
    throw error;
  }
}

const withBackends = (backends: unknown, targetRefs: unknown = route) =>
  faultsOf(() => untyped({ metadata, targetRefs, failover: { levels: [{ backends }] } }));

describe('a MeshRoutePolicy', () => {
  it('is that of YAML, with short forms expanded', () => {
    const policy = meshRoutePolicy({
      metadata,
      targetRefs: route,
      failover: {
        levels: [{ backends: { name: 'web', port: 8080 } }, { backends: ['web-home', 'shop'] }],
        healthyPercent: 80,
      },
      endpoints: { prefer: { matchLabels: { region: 'eu-west' } } },
    });
    expect(policy).toEqual({
      apiVersion: 'mesh-gateway.dev/v1alpha1',
      kind: 'MeshRoutePolicy',
      metadata,
      spec: {
        targetRefs: [{ group: GATEWAY_API, kind: 'HTTPRoute', name: 'web' }],
        failover: {
          levels: [
            { backends: [{ name: 'web', port: 8080 }] },
            {
              backends: [
                HOME,
                { kind: 'Service', name: 'shop', port: 80 },
                { kind: 'Service', name: 'shop', port: 81 },
              ],
            },
          ],
          healthyPercent: 80,
        },
        endpoints: { prefer: [{ matchLabels: { region: 'eu-west' } }] },
      },
    });
    expect(validate('MeshRoutePolicy', policy)).toMatchObject({ valid: true });
    expect(Object.isFrozen(policy.spec.targetRefs[0])).toBe(true);
  });

  it('targets rules, and routes that are declared elsewhere', () => {
    const elsewhere = { kind: 'GRPCRoute', name: 'api', sectionName: 'all' } as const;
    const { spec } = meshRoutePolicy({ metadata, targetRefs: [{ route, rule: 'checkout' }, elsewhere] });
    expect(spec.targetRefs).toEqual([
      { group: GATEWAY_API, kind: 'HTTPRoute', name: 'web', sectionName: 'checkout' },
      { group: GATEWAY_API, ...elsewhere },
    ]);
  });

  it('names a backend that all of its routes have once', () => {
    const stream = tcpRoute({ metadata, parentRefs: 'public', backendRefs: backend(home, 8081) });
    const { spec } = meshRoutePolicy({
      metadata,
      targetRefs: [route, stream],
      failover: { levels: [{ backends: [{ name: 'web', port: 1 }] }, { backends: 'web-home' }] },
    });
    expect(spec.failover?.levels?.[1]).toEqual({ backends: [HOME] });
  });

  it.each<readonly [string, readonly string[], readonly string[]]>([
    [
      'a name that the route lacks',
      withBackends(['shop', 'hom']),
      [
        'spec.failover.levels[0].backends[1]: hom is not a backend of HTTPRoute shop/web; it has web-home | shop',
      ],
    ],
    [
      'a MeshEndpoints that the route lacks',
      withBackends({ kind: 'MeshEndpoints', name: 'shop' }),
      [
        'spec.failover.levels[0].backends[0]: shop is not a backend of HTTPRoute shop/web; it has web-home | shop',
      ],
    ],
    [
      'a backend of another rule',
      withBackends('shop', { route, rule: 'checkout' }),
      ['spec.failover.levels[0].backends[0]: shop is not a backend of HTTPRoute shop/web; it has web-home'],
    ],
    [
      'a name where no route is known',
      withBackends('web-home', { kind: 'HTTPRoute', name: 'web' }),
      [
        'spec.failover.levels[0].backends[0]: web-home is a name, and the backends of the route are not known: write kind, name and port',
      ],
    ],
    [
      'a rule that the route lacks',
      faultsOf(() => untyped({ metadata, targetRefs: { route, rule: 'chekout' } })),
      ['spec.targetRefs[0]: HTTPRoute shop/web has no rule chekout; named are checkout'],
    ],
    [
      'a route of another namespace',
      faultsOf(() => untyped({ metadata: { name: 'web', namespace: 'other' }, targetRefs: route })),
      [
        'spec.targetRefs[0]: HTTPRoute shop/web is in another namespace than the policy: a policy applies to routes of its own',
      ],
    ],
    [
      'a misspelt field',
      faultsOf(() => untyped({ metadata, targetRefs: route, failovr: {} })),
      ['spec.failovr: is not a field of MeshRoutePolicy: did you mean failover?'],
    ],
    [
      'a field beside a route',
      faultsOf(() => untyped({ metadata, targetRefs: { route, section: 'a' } })),
      [expect.stringContaining('spec.targetRefs[0].section: is not a field of MeshRoutePolicy') as string],
    ],
    [
      'no target',
      faultsOf(() => untyped({ metadata })),
      [expect.stringContaining('spec.targetRefs: is required') as string],
    ],
    [
      'a value that is no object',
      faultsOf(() => untyped({ metadata, targetRefs: 'web' })),
      [expect.stringContaining('spec.targetRefs[0]: ') as string],
    ],
    [
      'levels that are no list',
      faultsOf(() => untyped({ metadata, targetRefs: route, failover: { levels: 'web-home' } })),
      [expect.stringContaining('spec.failover.levels: ') as string],
    ],
    [
      'a Service without a port',
      withBackends({ name: 'web' }),
      [expect.stringContaining('port is required for a Service') as string],
    ],
  ])('refuses %s', (_, faults, expected) => {
    expect(faults).toEqual(expected);
  });
});
