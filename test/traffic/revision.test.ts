import { describe, expect, it } from 'vitest';
import { keyOf } from '../../src/api/key.ts';
import type { Route } from '../../src/api/objects/gateway-api.ts';
import { inOrderOfKeys, refTo } from '../../src/api/objects/references.ts';
import { dataPathOf } from '../../src/traffic/data-path.ts';
import { revisionOf, revisionPart, routeSettings } from '../../src/traffic/settings/revision.ts';
import { resolveRoute } from '../../src/traffic/resolve-route.ts';
import { endpoint } from '../support/objects.ts';
import { resourceOf } from '../support/store/resources.ts';
import { resourcesFrom, tlsBudgetsOf } from '../support/traffic/resolve.ts';
import {
  backend,
  bindingObject,
  endpointList,
  endpointsObject,
  httpRoute,
  routeObject,
  service,
  serviceObject,
  tailnetObject,
} from '../support/traffic/objects.ts';

const gateway = { kind: 'Gateway', namespace: 'default', name: 'public' } as const;
const KINDS: readonly string[] = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'];

function revision(objects: readonly object[], encoding = 'a'): string | undefined {
  const routes = objects.map(resourceOf).filter(({ kind }) => KINDS.includes(kind)) as readonly Route[];
  const resources = resourcesFrom(objects);
  const budgets = tlsBudgetsOf(resources);
  const decided = resources.gatewaySettings(gateway);
  const settings = inOrderOfKeys(routes).map(
    route => [keyOf(refTo(route)), routeSettings(resolveRoute(resources, route), budgets)] as const,
  );
  const part = revisionPart(settings);
  return revisionOf(part ? [part] : [], { decided, clusterEncoding: encoding })?.hash;
}

const check = { enabled: true };
const [one, two] = endpointList(2, { healthCheck: check });
const web = endpointsObject('web', [one ?? {}, two ?? {}]);
const base = [tailnetObject(), web, httpRoute('web', [backend('web')])];
const before = revision(base);

describe('the revision of a Gateway', () => {
  it('is valid in a MeshBinding', () => {
    expect(before).toMatch(/^[0-9a-f]{8,64}$/);
  });

  it('is undefined where no route has MeshEndpoints', () => {
    expect(revision([tailnetObject(), web])).toBeUndefined();
    expect(revision([tailnetObject(), web, httpRoute('web', [service()])])).toBeUndefined();
  });

  it('exists for a missing MeshEndpoints, which may be created', () => {
    expect(revision([httpRoute('web', [backend('gone')])])).toBeDefined();
  });

  const replaced = (object: object) => [...base, object];

  it.each<readonly [string, readonly object[]]>([
    ['the order of objects', [...base].reverse()],
    ['one more endpoint', replaced(endpointsObject('web', endpointList(3, { healthCheck: check })))],
    ['a removed endpoint', replaced(endpointsObject('web', [one ?? {}]))],
    [
      'a status',
      replaced(
        endpointsObject('web', [one ?? {}, two ?? {}], {
          status: { endpoints: [{ name: 'e1', status: 'Unhealthy' }] },
        }),
      ),
    ],
    ['a route with Services alone', replaced(httpRoute('x', [service()]))],
    [
      'the proxies',
      replaced(tailnetObject('main', { pool: { mode: 'External', addresses: ['10.1.1.1:1'] } })),
    ],
    ['the settings of another Gateway', replaced(bindingObject('x', { dataPath: { mode: 'Direct' } }))],
    [
      'weights and priorities',
      replaced(
        endpointsObject('web', [
          { ...one, weight: 9 },
          { ...two, priority: 3 },
        ]),
      ),
    ],
  ])('does not change with %s', (_, objects) => {
    expect(revision(objects)).toBe(before);
  });

  it.each<readonly [string, readonly object[]]>([
    ['a route more', replaced(httpRoute('x', [backend('web')]))],
    ['a rule more', replaced(httpRoute('web', [backend('web')], [backend('web')]))],
    ['a route less', [tailnetObject(), web, httpRoute('x', [backend('web')])]],
    ['the first endpoint that can be used', [...base.slice(0, 1), httpRoute('web', [backend('web')])]],
    ['another protocol', replaced(endpointsObject('web', [{ ...one, protocol: 'HTTPS' }]))],
    [
      'another check',
      replaced(endpointsObject('web', [{ ...one, healthCheck: { enabled: true, path: '/up' } }])),
    ],
    ['backends of others in a rule', replaced(httpRoute('web', [backend('web'), service()]))],
    [
      'TLS settings',
      replaced(endpointsObject('web', [endpoint({ protocol: 'HTTPS', tls: { minVersion: '1.3' } })])),
    ],
    ['a removed MeshTailnet', base.slice(1)],
    ['what a MeshGateway decides', replaced(bindingObject('public', { dataPath: { mode: 'Direct' } }))],
  ])('changes with %s', (_, objects) => {
    const after = revision(objects);
    expect(after).toBeDefined();
    expect(after).not.toBe(before);
  });

  it('changes where a MeshGateway turns the checks of Envoy off or on', () => {
    const decided = (['Auto', 'On', 'Off'] as const).map(envoy =>
      revision(replaced(bindingObject('public', { healthChecks: { envoy } }))),
    );
    expect(new Set([before, ...decided]).size).toBe(4);
  });

  it('changes with the encoding of clusters', () => {
    expect(revision(base, 'b')).not.toBe(before);
  });

  it('covers all kinds of routes', () => {
    const tcp = endpointsObject('tcp', [endpoint({ protocol: 'TCP' })]);
    const routes = (['TLSRoute', 'TCPRoute'] as const).map(kind =>
      routeObject(kind, 'raw', [backend('tcp')]),
    );
    const all = [[], routes.slice(0, 1), routes].map(some => revision([...base, tcp, ...some]));
    expect(new Set(all).size).toBe(3);
  });
});

describe('the revision of a Gateway with a mixed rule', () => {
  const mixed = [tailnetObject(), web, httpRoute('web', [backend('web'), service()])];
  const now = revision(mixed);
  const beside = (object: object) => revision([...mixed, object]);

  it.each<readonly [string, object]>([
    ['another endpoint', endpointsObject('web', endpointList(3, { healthCheck: check }))],
    [
      'the health in a status',
      endpointsObject('web', [one ?? {}, two ?? {}], {
        status: { endpoints: [{ name: 'e1', status: 'Unhealthy' }] },
      }),
    ],
    ['the proxies', tailnetObject('main', { pool: { mode: 'External', addresses: ['10.1.1.1:1'] } })],
    ['a removed proxy', tailnetObject('main', { pool: { mode: 'Managed' } })],
    [
      'an older tailnet of the same domain',
      tailnetObject('a', {
        pool: { mode: 'External', addresses: ['10.2.2.2:1'] },
        metadata: { creationTimestamp: '2020-01-01T00:00:00Z' },
      }),
    ],
    ['weights', endpointsObject('web', [{ ...one, weight: 9 }, two ?? {}])],
    ['the addresses of the others', serviceObject('shop')],
  ])('does not change with %s, whose endpoints EDS serves', (_, object) => {
    expect(now).toBeDefined();
    expect(beside(object)).toBe(now);
  });
});

describe('the data path of a Gateway', () => {
  it.each([
    ['that of its MeshBinding', [bindingObject('public', { dataPath: { mode: 'Direct' } })], 'Direct'],
    ['the default where its MeshBinding has none', [bindingObject('public')], 'Proxy'],
    ['the default without a MeshBinding', [], 'Proxy'],
    ['not that of another Gateway', [bindingObject('other', { dataPath: { mode: 'Direct' } })], 'Proxy'],
  ])('is %s', (_, objects, mode) => {
    expect(dataPathOf(resourcesFrom(objects), gateway, 'Proxy')).toBe(mode);
  });
});
