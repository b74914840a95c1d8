import type { EnvoyHealthCheck } from '../../../src/traffic/settings/envoy-health-check.ts';
import type {
  EnvoyClusterSettings,
  TransportSocket,
} from '../../../src/traffic/settings/envoy-cluster-settings.ts';
import type { UpstreamTls } from '../../../src/traffic/upstream-tls.ts';
import { CLUSTER } from './clusters.ts';

/** Settings of a cluster: by default HTTP/1.1 without TLS. */
export function settings(more: Partial<EnvoyClusterSettings> = {}): EnvoyClusterSettings {
  return {
    cluster: CLUSTER,
    protocol: 'HTTP/1.1',
    otherSockets: [],
    defaultSocket: { is: 'clear' },
    socketMatches: [],
    ...more,
  };
}

/** Settings of a UDP cluster, which has no transport socket. */
export function datagrams(): EnvoyClusterSettings {
  return { cluster: CLUSTER, protocol: 'UDP', otherSockets: [], socketMatches: [] };
}

function tls(more: Partial<UpstreamTls> = {}): UpstreamTls {
  return { serverName: { is: 'per-endpoint' }, insecureSkipVerify: false, ...more };
}

export function tlsSocket(more: Partial<UpstreamTls> = {}): Extract<TransportSocket, { readonly is: 'tls' }> {
  return { is: 'tls', tls: tls(more) };
}

const TIMES = { intervalMs: 5000, timeoutMs: 1500, healthyThreshold: 2, unhealthyThreshold: 3 } as const;

export const HTTP_CHECK: Extract<EnvoyHealthCheck, { readonly type: 'HTTP' }> = {
  ...TIMES,
  type: 'HTTP',
  path: '/ready?full=1',
  expectedStatus: 204,
  headers: [['x-share', '100%']],
};
export const TCP_CHECK: EnvoyHealthCheck = { ...TIMES, type: 'TCP' };
export const GRPC_CHECK: EnvoyHealthCheck = { ...TIMES, type: 'GRPC', service: 'shop.Cart' };

const NAME = { is: 'fixed', name: 'legacy.example.org' } as const;

/** A CA certificate that Envoy accepts; its key does not exist any more. */
export const CA = `-----BEGIN CERTIFICATE-----
MIIBeTCCAR+gAwIBAgIUfsus1s+OZh0yc/jXcxspD3AjwDIwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGbm9ib2R5MCAXDTI2MTEyMTE5MTA1OVoYDzIxMjYxMDI4MTkx
MDU5WjARMQ8wDQYDVQQDDAZub2JvZHkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AATsdKhEMws87ZT7hLNWk6XE7razEqULVoPejQC0tJRUyPpzXzDsQDyPkvwtVYgB
bej6PcS+ciM5VC69E1Xd+B+3o1MwUTAdBgNVHQ4EFgQUDEsKFSHv6jP+pUOyu9nA
X+0Tfa4wHwYDVR0jBBgwFoAUDEsKFSHv6jP+pUOyu9nAX+0Tfa4wDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEA8+VH7O5XGgrEDGslzNalYEieTTGK
0Ll9jIFDqJz+9f8CIG+MaaxqEA9EtVhNpqxqspnyIeRuZFMNTcedP180Y0yM
-----END CERTIFICATE-----
`;

const CLEAR = { name: 'clear', socket: { is: 'clear' } } as const;

/** Settings of every kind, by description. */
export const EVERY_KIND: readonly (readonly [it: string, settings: EnvoyClusterSettings])[] = [
  ['HTTP/1.1 in clear', settings()],
  ['clear text by match', settings({ defaultSocket: { is: 'closed' }, socketMatches: [CLEAR] })],
  [
    'checks of gRPC over TLS by match',
    settings({
      protocol: 'HTTP/2',
      defaultSocket: { is: 'closed' },
      socketMatches: [{ name: '0a1b', socket: tlsSocket({ alpn: 'h2' }) }],
      healthCheck: GRPC_CHECK,
    }),
  ],
  ['HTTP/2 in clear', settings({ protocol: 'HTTP/2' })],
  ['raw bytes', settings({ protocol: 'TCP' })],
  ['UDP', datagrams()],
  ['TLS with the name of each endpoint', settings({ defaultSocket: tlsSocket({ alpn: 'http/1.1' }) })],
  ['HTTP/2 over TLS', settings({ protocol: 'HTTP/2', defaultSocket: tlsSocket({ alpn: 'h2' }) })],
  [
    'TLS with a name and authority of its own',
    settings({ defaultSocket: tlsSocket({ serverName: NAME, ca: CA }) }),
  ],
  [
    'TLS with an address for a name',
    settings({ defaultSocket: tlsSocket({ serverName: { is: 'fixed', name: '100.64.0.7' }, ca: CA }) }),
  ],
  ['TLS 1.3 only', settings({ defaultSocket: tlsSocket({ minVersion: '1.3' }) })],
  ['TLS that trusts anyone', settings({ defaultSocket: tlsSocket({ insecureSkipVerify: true }) })],
  [
    'TLS that trusts anyone with a name',
    settings({ defaultSocket: tlsSocket({ insecureSkipVerify: true, serverName: NAME }) }),
  ],
  [
    'several sockets, closed by default',
    settings({
      defaultSocket: { is: 'closed' },
      socketMatches: [
        { name: '0a1b', socket: tlsSocket({ serverName: NAME }) },
        { name: '2c3d', socket: tlsSocket({ ca: CA }) },
        CLEAR,
      ],
    }),
  ],
  [
    'a rule that mixes ours with others',
    settings({
      defaultSocket: { is: 'closed' },
      otherSockets: [{ name: 'Service/default/shop:80', envoyGatewayName: `${CLUSTER}/tls/0` }],
      socketMatches: [{ name: '0a1b', socket: tlsSocket() }],
    }),
  ],
  ['checks by HTTP', settings({ healthCheck: HTTP_CHECK })],
  ['checks by HTTP/2', settings({ protocol: 'HTTP/2', healthCheck: { ...HTTP_CHECK, headers: [] } })],
  ['checks by TCP', settings({ protocol: 'TCP', healthCheck: TCP_CHECK })],
  ['checks by gRPC', settings({ protocol: 'HTTP/2', healthCheck: GRPC_CHECK })],
];
