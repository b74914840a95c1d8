import type {
  CheckNeeds,
  ClusterNeeds,
  SocketNeeds,
  TlsNeeds,
} from '../../../src/traffic/envoy-cluster-settings.ts';
import { CLUSTER } from './clusters.ts';

/** What a cluster needs: HTTP/1.1 in clear, if nothing else is said. */
export function needs(more: Partial<ClusterNeeds> = {}): ClusterNeeds {
  return {
    cluster: CLUSTER,
    speech: 'HTTP/1.1',
    others: [],
    socket: { is: 'clear' },
    matches: [],
    ...more,
  };
}

/** The needs of datagrams, which have no socket. */
export function datagrams(): ClusterNeeds {
  return { cluster: CLUSTER, speech: 'datagrams', others: [], matches: [] };
}

function tls(more: Partial<TlsNeeds> = {}): TlsNeeds {
  return { serverName: { is: 'per-endpoint' }, insecureSkipVerify: false, ...more };
}

export function tlsSocket(more: Partial<TlsNeeds> = {}): Extract<SocketNeeds, { readonly is: 'tls' }> {
  return { is: 'tls', tls: tls(more) };
}

const TIMES = { intervalMs: 5000, timeoutMs: 1500, healthyThreshold: 2, unhealthyThreshold: 3 } as const;

export const HTTP_CHECK: Extract<CheckNeeds, { readonly is: 'HTTP' }> = {
  ...TIMES,
  is: 'HTTP',
  path: '/ready?full=1',
  expectedStatus: 204,
  headers: [['x-share', '100%']],
};
export const TCP_CHECK: CheckNeeds = { ...TIMES, is: 'TCP' };
export const GRPC_CHECK: CheckNeeds = { ...TIMES, is: 'GRPC', service: 'shop.Cart' };

const NAME = { is: 'fixed', name: 'legacy.example.org' } as const;

/** A certificate of nobody, which Envoy reads as one of an authority; its key has been thrown away. */
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

/** Needs of every kind, by what they are. */
export const EVERY_KIND: readonly (readonly [it: string, needs: ClusterNeeds])[] = [
  ['HTTP/1.1 in clear', needs()],
  ['clear text by match', needs({ socket: { is: 'closed' }, matches: [CLEAR] })],
  [
    'checks of gRPC over TLS by match',
    needs({
      speech: 'HTTP/2',
      socket: { is: 'closed' },
      matches: [{ name: '0a1b', socket: tlsSocket({ alpn: 'h2' }) }],
      check: GRPC_CHECK,
    }),
  ],
  ['HTTP/2 in clear', needs({ speech: 'HTTP/2' })],
  ['raw bytes', needs({ speech: 'bytes' })],
  ['datagrams', datagrams()],
  ['TLS with the name of each endpoint', needs({ socket: tlsSocket({ alpn: 'http/1.1' }) })],
  ['HTTP/2 over TLS', needs({ speech: 'HTTP/2', socket: tlsSocket({ alpn: 'h2' }) })],
  ['TLS with a name and authority of its own', needs({ socket: tlsSocket({ serverName: NAME, ca: CA }) })],
  [
    'TLS with an address for a name',
    needs({ socket: tlsSocket({ serverName: { is: 'fixed', name: '100.64.0.7' }, ca: CA }) }),
  ],
  ['TLS 1.3 only', needs({ socket: tlsSocket({ minVersion: '1.3' }) })],
  ['TLS that trusts anyone', needs({ socket: tlsSocket({ insecureSkipVerify: true }) })],
  [
    'TLS that trusts anyone with a name',
    needs({ socket: tlsSocket({ insecureSkipVerify: true, serverName: NAME }) }),
  ],
  [
    'several sockets, closed by default',
    needs({
      socket: { is: 'closed' },
      matches: [
        { name: '0a1b', socket: tlsSocket({ serverName: NAME }) },
        { name: '2c3d', socket: tlsSocket({ ca: CA }) },
        CLEAR,
      ],
    }),
  ],
  [
    'a rule that mixes ours with others',
    needs({
      socket: { is: 'closed' },
      others: [{ name: 'Service/default/shop:80', madeAs: `${CLUSTER}/tls/0` }],
      matches: [{ name: '0a1b', socket: tlsSocket() }],
    }),
  ],
  ['checks by HTTP', needs({ check: HTTP_CHECK })],
  ['checks by HTTP/2', needs({ speech: 'HTTP/2', check: { ...HTTP_CHECK, headers: [] } })],
  ['checks by TCP', needs({ speech: 'bytes', check: TCP_CHECK })],
  ['checks by gRPC', needs({ speech: 'HTTP/2', check: GRPC_CHECK })],
];
