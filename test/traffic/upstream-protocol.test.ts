import { describe, expect, it } from 'vitest';
import type { Protocol } from '../../src/api/generated/types.ts';
import type { RouteKind } from '../../src/api/key.ts';
import type { Traffic } from '../support/traffic/resolve.ts';
import { reportedIn, resourcesFrom, trafficOf } from '../support/traffic/resolve.ts';
import { backend, endpointsObject, routeObject, tailnetObject } from '../support/traffic/objects.ts';
import { endpoint } from '../support/objects.ts';

const CLUSTERS: Readonly<Record<RouteKind, string>> = {
  HTTPRoute: 'httproute/default/web/rule/0',
  GRPCRoute: 'grpcroute/default/web/rule/0',
  TLSRoute: 'tlsroute/default/web/rule/-1',
  TCPRoute: 'tcproute/default/web/rule/-1',
  UDPRoute: 'udproute/default/web/rule/-1',
};

function traffic(kind: RouteKind, protocol: Protocol, tls?: object): Traffic {
  const web = endpointsObject('web', [endpoint({ protocol, ...(tls && { tls }) })]);
  const resources = resourcesFrom([tailnetObject(), web, routeObject(kind, 'web', [backend('web')])]);
  return trafficOf(resources, CLUSTERS[kind]);
}

/** The protocol to the endpoint and its socket, or the reason for which it is unused. */
function upstreamOf({ rule, settings }: Traffic): string {
  if (rule.unused.length > 0) return rule.unused.map(({ reason }) => reason).join();
  const [{ socket } = {}] = settings?.socketMatches ?? [];
  const tls = socket?.is === 'tls' ? ` in TLS${socket.tls.alpn ? ` for ${socket.tls.alpn}` : ''}` : '';
  return `${settings?.protocol}${tls}`;
}

const NO = 'ProtocolMismatch';

/** From the table of protocols and routes: all cells, without and with `tls`. */
const TABLE: readonly (readonly [
  Protocol,
  'without tls' | 'with tls',
  Readonly<Record<RouteKind, string>>,
])[] = [
  [
    'HTTP',
    'without tls',
    { HTTPRoute: 'HTTP/1.1', GRPCRoute: NO, TLSRoute: NO, TCPRoute: 'TCP', UDPRoute: NO },
  ],
  [
    'HTTPS',
    'without tls',
    {
      HTTPRoute: 'HTTP/1.1 in TLS for http/1.1',
      GRPCRoute: 'HTTP/2 in TLS for h2',
      TLSRoute: 'TCP',
      TCPRoute: 'TCP',
      UDPRoute: NO,
    },
  ],
  [
    'HTTPS',
    'with tls',
    {
      HTTPRoute: 'HTTP/1.1 in TLS for http/1.1',
      GRPCRoute: 'HTTP/2 in TLS for h2',
      TLSRoute: 'TCP',
      TCPRoute: 'TCP',
      UDPRoute: NO,
    },
  ],
  [
    'gRPC',
    'without tls',
    { HTTPRoute: 'HTTP/2', GRPCRoute: 'HTTP/2', TLSRoute: NO, TCPRoute: 'TCP', UDPRoute: NO },
  ],
  [
    'gRPC',
    'with tls',
    {
      HTTPRoute: 'HTTP/2 in TLS for h2',
      GRPCRoute: 'HTTP/2 in TLS for h2',
      TLSRoute: NO,
      TCPRoute: 'TCP',
      UDPRoute: NO,
    },
  ],
  ['TCP', 'without tls', { HTTPRoute: NO, GRPCRoute: NO, TLSRoute: 'TCP', TCPRoute: 'TCP', UDPRoute: NO }],
  ['TLS', 'without tls', { HTTPRoute: NO, GRPCRoute: NO, TLSRoute: 'TCP', TCPRoute: 'TCP', UDPRoute: NO }],
  [
    'TLS',
    'with tls',
    { HTTPRoute: NO, GRPCRoute: NO, TLSRoute: 'TCP', TCPRoute: 'TCP in TLS', UDPRoute: NO },
  ],
  ['UDP', 'without tls', { HTTPRoute: NO, GRPCRoute: NO, TLSRoute: NO, TCPRoute: NO, UDPRoute: 'UDP' }],
];

const cells = TABLE.flatMap(([protocol, tls, row]) =>
  (Object.keys(row) as RouteKind[]).map(kind => ({ protocol, tls, kind, expected: row[kind] })),
);

describe('an endpoint', () => {
  it.each(cells)('of $protocol $tls behind $kind: $expected', ({ protocol, tls, kind, expected }) => {
    expect(upstreamOf(traffic(kind, protocol, tls === 'with tls' ? {} : undefined))).toBe(expected);
  });

  it('of a mismatched protocol is unused, and the supported ones are listed', () => {
    const [unused] = reportedIn(traffic('UDPRoute', 'HTTP').rule.unused);
    expect(unused).toEqual({
      reason: 'ProtocolMismatch',
      object: 'MeshEndpoints/default/web',
      endpoint: 'web',
      message:
        'spec.rules[0].backendRefs[0]: UDPRoute does not support protocol HTTP of endpoint web of MeshEndpoints default/web: use HTTPRoute or TCPRoute, or change the protocol (UDPRoute supports UDP)',
    });
  });

  it.each([
    ['HTTPRoute', 'HTTP/1.1'],
    ['GRPCRoute', 'HTTP/2'],
    ['TLSRoute', 'TCP'],
    ['TCPRoute', 'TCP'],
    ['UDPRoute', 'UDP'],
  ] as const)('that does not exist leaves the cluster of a %s with %s', (kind, protocol) => {
    const resources = resourcesFrom([routeObject(kind, 'web', [backend('web')])]);
    const { settings } = trafficOf(resources, CLUSTERS[kind]);
    const clear = { name: 'clear', socket: { is: 'clear' } };
    const sockets =
      kind === 'UDPRoute'
        ? { socketMatches: [] }
        : { defaultSocket: { is: 'closed' }, socketMatches: [clear] };
    expect(settings).toEqual({ cluster: CLUSTERS[kind], protocol, otherSockets: [], ...sockets });
  });

  it('that comes first decides the protocol of the rule', () => {
    const endpoints = [
      endpoint({ name: 'a', meshIP: '100.64.0.1', protocol: 'gRPC' }),
      endpoint({ name: 'b', meshIP: '100.64.0.2', protocol: 'HTTP' }),
      endpoint({ name: 'c', meshIP: '100.64.0.3', protocol: 'gRPC' }),
    ];
    const route = routeObject('HTTPRoute', 'web', [backend('web')]);
    const { rule } = trafficOf(resourcesFrom([tailnetObject(), endpointsObject('web', endpoints), route]));
    expect(rule.protocol).toBe('HTTP/2');
    expect(rule.backends.flatMap(each => each.endpoints.map(used => used.endpoint.name))).toEqual(['a', 'c']);
    expect(reportedIn(rule.unused)).toEqual([
      {
        reason: 'ProtocolConflict',
        object: 'MeshEndpoints/default/web',
        endpoint: 'b',
        message:
          'spec.rules[0].backendRefs[0]: endpoint b of MeshEndpoints default/web needs HTTP/1.1, but endpoint a of MeshEndpoints default/web, which comes first, needs HTTP/2, and Envoy uses one protocol for all endpoints of a rule: give them rules of their own',
      },
    ]);
  });
});
