import { describe, expect, it } from 'vitest';
import { keyOf } from '../../src/api/key.ts';
import type { Route } from '../../src/api/objects/gateway-api.ts';
import { refTo } from '../../src/api/objects/references.ts';
import { unusedOfRoute } from '../../src/traffic/endpoints/route-traffic.ts';
import { envoyClusterSettingsOf } from '../../src/traffic/settings/envoy-cluster-settings.ts';
import { revisionOf, revisionPart, routeSettings } from '../../src/traffic/settings/revision.ts';
import { closedSettingsOf } from '../../src/traffic/settings/tls-budget.ts';
import type { TrafficResources } from '../../src/traffic/traffic-resources.ts';
import { resolveRoute } from '../../src/traffic/resolve-route.ts';
import { endpoint } from '../support/objects.ts';
import { resourceOf } from '../support/store/resources.ts';
import { tracedRoutes } from '../support/tools/routes.ts';
import { CERTIFICATE } from '../support/traffic/certificates.ts';
import { resourcesFrom, ruleOf, tlsBudgetsOf } from '../support/traffic/resolve.ts';
import {
  backend,
  configMapObject,
  endpointsObject,
  httpRoute,
  tailnetObject,
} from '../support/traffic/objects.ts';

/** Nearly all that a cluster may have: 256 KB, of which the budget has room for 45 times. */
const FULL = CERTIFICATE.repeat(Math.floor((255 * 1024) / CERTIFICATE.length));
const ROOM = 45;

/** An object whose endpoint has as many certificates as a cluster may have, and one without TLS. */
const world = [
  tailnetObject(),
  configMapObject('ca', { 'ca.crt': FULL }),
  endpointsObject('large', [
    endpoint({ name: 'a', port: 443, protocol: 'HTTPS', tls: { caRef: { name: 'ca' } } }),
  ]),
  endpointsObject('small', [endpoint({ name: 'b', port: 443, protocol: 'HTTPS', tls: { ca: CERTIFICATE } })]),
  endpointsObject('clear', [endpoint({ name: 'c', meshIP: '100.64.0.3', port: 443 })]),
];

const to = (name: string) => backend(name, { port: 443 });

/** A route with as many rules to `large`. */
const largeRoute = (name: string, rules: number) =>
  httpRoute(name, ...Array.from({ length: rules }, () => [to('large')]));

const clustersOf = (name: string, first: number, end: number) =>
  Array.from({ length: end - first }, (_, at) => `httproute/default/${name}/rule/${first + at}`);

function overOf(resources: TrafficResources, namespace: string): readonly string[] {
  return [...tlsBudgetsOf(resources)(namespace).keys()];
}

function overIn(...routes: readonly object[]): readonly string[] {
  return overOf(resourcesFrom([...world, ...routes]), 'default');
}

describe('the TLS settings of the routes of a namespace', () => {
  it('all fit where each rule has as many as a cluster may have, in 45 rules', () => {
    expect(overIn(largeRoute('a', 16), largeRoute('b', 16), largeRoute('c', ROOM - 32))).toEqual([]);
  });

  it('are left out beyond 12 MB in the order of the names of routes and rules, whatever the order of objects', () => {
    const routes = [largeRoute('a', 16), largeRoute('b', 16), largeRoute('c', 16)];
    expect(overIn(...routes)).toEqual(clustersOf('c', ROOM - 32, 16));
    expect(overIn(...[...routes].reverse())).toEqual(clustersOf('c', ROOM - 32, 16));
  });

  it('have room for later rules that are smaller, and for rules without TLS', () => {
    const more = [httpRoute('d', [to('small')], [to('clear')]), largeRoute('e', 1)];
    const routes = [largeRoute('a', 16), largeRoute('b', 16), largeRoute('c', 16), ...more];
    expect(overIn(...routes)).toEqual([...clustersOf('c', ROOM - 32, 16), ...clustersOf('e', 0, 1)]);
  });

  it('count for each backendRef, which may get a cluster of its own', () => {
    const refs = Array.from({ length: 16 }, () => to('large'));
    expect(overIn(httpRoute('a', refs, refs, refs))).toEqual(clustersOf('a', 2, 3));
  });

  it('count many small ones by what their sockets take', () => {
    const endpoints = Array.from({ length: 64 }, (_, at) =>
      endpoint({
        name: `e${at}`,
        meshIP: `100.64.0.${at + 1}`,
        port: 443,
        protocol: 'HTTPS',
        tls: { serverName: `service-${at}.example.com` },
      }),
    );
    const refs = Array.from({ length: 16 }, () => to('many'));
    const routes = Array.from({ length: 2 }, (_, at) =>
      httpRoute(`r${at}`, ...Array.from({ length: 16 }, () => refs)),
    );
    expect(overIn(endpointsObject('many', endpoints), ...routes)).toEqual(clustersOf('r1', 6, 16));
  });

  it('of another namespace do not count', () => {
    const far = (object: object) => {
      const { metadata } = object as { readonly metadata: object };
      return { ...object, metadata: { ...metadata, namespace: 'far' } };
    };
    const objects = [...world, ...world.slice(1).map(far), far(largeRoute('a', 16))];
    const noisy = Array.from({ length: 16 }, (_, at) => largeRoute(`n${at}`, 16));
    const resources = resourcesFrom([...objects, ...noisy]);
    expect(overOf(resources, 'default')).toHaveLength(16 * 16 - ROOM);
    expect(overOf(resources, 'far')).toEqual([]);
  });
});

const gateway = { kind: 'Gateway', namespace: 'default', name: 'public' } as const;

function revision(resources: TrafficResources, routes: readonly object[]): string | undefined {
  const read = routes.map(resourceOf) as readonly Route[];
  const decided = resources.gatewaySettings(gateway);
  const budgets = tlsBudgetsOf(resources);
  const settings = read.map(
    route => [keyOf(refTo(route)), routeSettings(resolveRoute(resources, route), budgets)] as const,
  );
  const part = revisionPart(settings);
  return revisionOf(part ? [part] : [], { decided, clusterEncoding: 'a' })?.hash;
}

describe('a rule over the budget', () => {
  const first = [largeRoute('a', 16), largeRoute('b', 16), largeRoute('c', ROOM - 32)];
  const last = httpRoute('d', [to('large'), to('clear')]);
  const mixedObjects = [...world, ...first, last];
  const resources = resourcesFrom(mixedObjects);

  it('has the closed socket for endpoints with TLS, and keeps those without', () => {
    const rule = ruleOf(resources, 'httproute/default/d/rule/0');
    const settings = rule && envoyClusterSettingsOf(rule);
    expect(settings?.socketMatches).toHaveLength(2);
    const closed = settings && closedSettingsOf(settings);
    expect(closed).toMatchObject({
      defaultSocket: { is: 'closed' },
      socketMatches: [{ name: 'clear', socket: { is: 'clear' } }],
    });
    expect(closed && closedSettingsOf(closed)).toBeUndefined();
  });

  it('is reported by trace and in status, with the share', () => {
    const message =
      'TooManyTlsSettings: spec.rules[0].backendRefs[0]: the TLS settings of the routes in namespace default, certificates included, exceed 12 MB, the share of a namespace, and those of this rule are left out, so connections to endpoints of MeshEndpoints default/large with TLS fail: use fewer certificates, or fewer rules with them';
    const traced = tracedRoutes([...world, ...first, last]);
    expect(traced.map(({ problems }) => problems.length)).toEqual([0, 0, 0, 1]);
    expect(traced.at(-1)?.text).toContain(message);
    const route = resourceOf(last) as Route;
    expect(unusedOfRoute(resources, route, 'Proxy', tlsBudgetsOf(resources))).toMatchObject([
      { reason: 'TooManyTlsSettings', object: 'MeshEndpoints/default/large' },
    ]);
    const alone = resourcesFrom([...world, last]);
    expect(unusedOfRoute(alone, route, 'Proxy', tlsBudgetsOf(alone))).toEqual([]);
  });

  it('moves the revision when it gets over the budget by the route of another Gateway, and back', () => {
    const before = revision(resourcesFrom([...world, ...first.slice(1), last]), [last]);
    expect(revision(resources, [last])).not.toBe(before);
    expect(revision(resourcesFrom([...world, last]), [last])).toBe(before);
  });
});
