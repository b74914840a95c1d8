import { describe, expect, it } from 'vitest';
import type { Protocol } from '../../src/api/generated/types.ts';
import type { RouteKind } from '../../src/api/key.ts';
import { DEFAULT_GUARD } from '../../src/traffic/address-guard.ts';
import { loadAssignmentOf } from '../../src/traffic/endpoints/load-assignment.ts';
import { settingsFor } from '../../src/traffic/settings/envoy-cluster-settings.ts';
import type { EnvoyClusterSettings } from '../../src/traffic/settings/envoy-cluster-settings.ts';
import { resourcesFrom, trafficOf } from '../support/traffic/resolve.ts';
import type { Traffic } from '../support/traffic/resolve.ts';
import {
  backend,
  endpointList,
  endpointsObject,
  routeObject,
  service,
  tailnetObject,
} from '../support/traffic/objects.ts';

type Fields = Readonly<Record<string, unknown>>;

type Rule = {
  readonly kind?: RouteKind;
  readonly protocol?: Protocol;
  readonly others?: readonly Fields[];
  readonly endpoint?: Fields;
};

/** A rule whose endpoints `e1`, `e2` ... have these checks, or none. */
function checked(checks: readonly (Fields | undefined)[], rule: Rule = {}): Traffic {
  const { kind = 'HTTPRoute', protocol = 'HTTP', others = [], endpoint = {} } = rule;
  const endpoints = endpointList(checks.length, { protocol, ...endpoint }).map((one, at) => {
    const check = checks[at];
    return check ? { ...one, healthCheck: { enabled: true, ...check } } : one;
  });
  const cluster = `${kind.toLowerCase()}/default/web/rule/${/^(HTTP|GRPC)/.test(kind) ? 0 : -1}`;
  const route = routeObject(kind, 'web', [backend('web'), ...others]);
  return trafficOf(resourcesFrom([tailnetObject(), endpointsObject('web', endpoints), route]), cluster);
}

const common = { intervalMs: 30_000, timeoutMs: 10_000, healthyThreshold: 2, unhealthyThreshold: 3 };
const usual = { ...common, type: 'HTTP', path: '/', expectedStatus: 200, headers: [] };

describe('the health checks of Envoy', () => {
  it.each<readonly [string, readonly (Fields | undefined)[], object | undefined]>([
    ['are none where no endpoint is checked', [undefined, { enabled: false }], undefined],
    ['are those of the only checked endpoint', [undefined, {}], usual],
    ['are those of all checked endpoints', [{}, {}, undefined], usual],
    ['are compared by value', [{ interval: '60s' }, { interval: '1m' }], { ...usual, intervalMs: 60_000 }],
    [
      'ignore fields of other check types',
      [
        { type: 'TCP', path: '/a' },
        { type: 'TCP', path: '/b' },
      ],
      { ...common, type: 'TCP' },
    ],
    [
      'have all fields',
      [
        {
          path: '/up',
          expectedStatus: 204,
          healthyThreshold: 1,
          unhealthyThreshold: 5,
          headers: { 'X-B': '2', 'X-A': '1' },
        },
      ],
      {
        ...usual,
        path: '/up',
        expectedStatus: 204,
        healthyThreshold: 1,
        unhealthyThreshold: 5,
        headers: [
          ['X-A', '1'],
          ['X-B', '2'],
        ],
      },
    ],
    [
      'have a timeout of at most the interval',
      [{ interval: '1s', timeout: '1m' }],
      { ...usual, intervalMs: 1000, timeoutMs: 1000 },
    ],
    [
      'are equal if their limited timeouts are',
      [
        { interval: '1s', timeout: '1m' },
        { interval: '1s', timeout: '2m' },
      ],
      { ...usual, intervalMs: 1000, timeoutMs: 1000 },
    ],
    ['may differ in Host', [{ headers: { Host: 'a' } }, { headers: { host: 'b' } }], usual],
    ['are none where types differ', [{}, { type: 'TCP' }], undefined],
    ['are none where paths differ', [{}, { path: '/b' }], undefined],
    ['are none where intervals differ', [{}, { interval: '31s' }], undefined],
    ['are none where timeouts differ', [{}, { timeout: '1s' }], undefined],
    ['are none where thresholds differ', [{}, { healthyThreshold: 3 }], undefined],
    ['are none where expected codes differ', [{}, { expectedStatus: 201 }], undefined],
    ['are none where headers differ', [{}, { headers: { 'X-A': '1' } }], undefined],
    [
      'are none where a header is secret',
      [{ headersFrom: [{ name: 'Authorization', secretKeyRef: { name: 's', key: 'k' } }] }],
      undefined,
    ],
    [
      'are none where one header of several checks is secret',
      [{}, { headersFrom: [{ name: 'A', secretKeyRef: { name: 's', key: 'k' } }] }],
      undefined,
    ],
  ])('%s', (_, checks, settings) => {
    expect(checked(checks).settings?.healthCheck).toStrictEqual(settings);
  });

  it.each<readonly [string, Fields, Rule, object | undefined]>([
    [
      'of gRPC check the service',
      { type: 'GRPC', service: 'shop' },
      { protocol: 'gRPC' },
      { ...common, type: 'GRPC', service: 'shop' },
    ],
    ['of gRPC check the server', { type: 'GRPC' }, { protocol: 'gRPC' }, { ...common, type: 'GRPC' }],
    [
      'of gRPC ignore an empty service',
      { type: 'GRPC', service: '' },
      { protocol: 'gRPC' },
      { ...common, type: 'GRPC' },
    ],
    [
      'of gRPC over TLS need HTTP/2',
      { type: 'GRPC' },
      { protocol: 'HTTPS', kind: 'GRPCRoute' },
      { ...common, type: 'GRPC' },
    ],
    ['of gRPC are none in a cluster of HTTP/1.1', { type: 'GRPC' }, { protocol: 'HTTPS' }, undefined],
    [
      'of gRPC are none in a TCP cluster',
      { type: 'GRPC' },
      { protocol: 'gRPC', kind: 'TCPRoute' },
      undefined,
    ],
    ['of HTTP use TLS where traffic does', {}, { protocol: 'HTTPS' }, usual],
    ['of HTTP are none where TLS is passed through', {}, { protocol: 'HTTPS', kind: 'TLSRoute' }, undefined],
    ['of HTTP are made in a TCP cluster without TLS', {}, { protocol: 'HTTP', kind: 'TCPRoute' }, usual],
    ['of HTTP are made for a TCP endpoint', {}, { protocol: 'TCP', kind: 'TCPRoute' }, usual],
    [
      'of HTTP are made for a TLS endpoint to which Envoy originates TLS',
      {},
      { protocol: 'TLS', kind: 'TCPRoute', endpoint: { tls: {} } },
      usual,
    ],
    ['of HTTP are none for a TLS endpoint without tls', {}, { protocol: 'TLS', kind: 'TCPRoute' }, undefined],
    [
      'of HTTP are none for a TLS endpoint of a TLSRoute',
      {},
      { protocol: 'TLS', kind: 'TLSRoute', endpoint: { tls: {} } },
      undefined,
    ],
    [
      'of TCP are made in a TCP cluster',
      { type: 'TCP' },
      { protocol: 'TLS', kind: 'TLSRoute' },
      { ...common, type: 'TCP' },
    ],
    ['of UDP are none', { type: 'UDP' }, { protocol: 'UDP', kind: 'UDPRoute' }, undefined],
    ['are none in a mixed rule', {}, { others: [service()] }, undefined],
  ])('%s', (_, check, rule, settings) => {
    expect(checked([check], rule).settings?.healthCheck).toStrictEqual(settings);
  });

  it('are disabled for endpoints without a check', () => {
    const isUnchecked = (traffic: Traffic) =>
      traffic.through.Direct.assignment.localities.flatMap(({ endpoints }) =>
        endpoints.map(each => each.isHealthCheckDisabled),
      );
    expect(isUnchecked(checked([{}, undefined, { enabled: false }]))).toEqual([false, true, true]);
    expect(isUnchecked(checked([undefined, undefined]))).toEqual([false, false]);
  });

  it('stay disabled for these where checks are turned off, since Envoy has the endpoints before the cluster', () => {
    const { rule, settings } = checked([{}, undefined]);
    const off = settingsFor(
      settings as EnvoyClusterSettings,
      { checkedByOperator: ['default/web:8080'] },
      rule,
    );
    const resources = { relays: () => undefined, guard: DEFAULT_GUARD };
    const { assignment } = loadAssignmentOf(rule, off, 'Direct', resources);
    expect(off).not.toHaveProperty('healthCheck');
    expect(
      assignment.localities.flatMap(({ endpoints }) => endpoints.map(each => each.isHealthCheckDisabled)),
    ).toEqual([false, true]);
  });

  it('send meshFQDN as Host, unless a header sets another', () => {
    const { through } = checked([
      {},
      undefined,
      { headers: { hOST: 'shop.example.com' } },
      { headers: { Host: '' } },
    ]);
    const [locality] = through.Direct.assignment.localities;
    expect(locality?.endpoints.map(({ healthCheckHost }) => healthCheckHost)).toEqual([
      'e1.example.ts.net',
      'e2.example.ts.net',
      'shop.example.com',
      'e4.example.ts.net',
    ]);
  });

  it('ignore the checks of unused endpoints', () => {
    const { settings } = checked([{}, { path: '/other' }], { others: [] });
    expect(settings?.healthCheck).toBeUndefined();
    const endpoints = endpointList(2).map((one, at) => ({
      ...one,
      meshIP: '100.64.0.1',
      healthCheck: { enabled: true, path: at === 0 ? '/' : '/other' },
    }));
    const route = routeObject('HTTPRoute', 'web', [backend('web')]);
    const one = trafficOf(resourcesFrom([tailnetObject(), endpointsObject('web', endpoints), route]));
    expect(one.settings?.healthCheck).toEqual(usual);
  });
});
