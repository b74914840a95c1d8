import { create, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { envoyClusterEditor } from '../../../src/extension/envoy-cluster/envoy-cluster.ts';
import { Cluster_TransportSocketMatchSchema } from '../../../src/extension/proto/envoy/config/cluster/v3_pb.ts';
import { bytesField, bytesOf, Fields, concat } from '../../../src/extension/wire.ts';
import type { EnvoyClusterSettings } from '../../../src/traffic/settings/envoy-cluster-settings.ts';
import { varintField } from '../../support/extension/varint-field.ts';
import {
  gatewayCluster,
  httpOptions,
  opened,
  proxyProtocol,
  read,
} from '../../support/extension/clusters.ts';
import { anyField, hostileBytes, seed } from '../../support/extension/messages.ts';
import {
  datagrams,
  EVERY_KIND,
  settings,
  tlsSocket,
  HTTP_CHECK,
} from '../../support/extension/cluster-settings.ts';

const TARGET = 'mesh-extension-server.mesh-system.svc.cluster.local:5005';
const mesh = envoyClusterEditor({ target: TARGET });
const EMPTY = new Uint8Array();

/** The numbers of the fields that may be set in a cluster. */
const OURS = [3, 8, 24, 27, 36, 43];
const CIRCUIT_BREAKERS = 10;
const OUTLIER_DETECTION = 19;

/** The fields of a cluster that we never set: circuit breakers only for UDP. */
function foreign(cluster: Uint8Array, { protocol }: EnvoyClusterSettings = settings()): readonly string[] {
  const fields = new Fields(cluster);
  const found: string[] = [];
  while (fields.next()) {
    if (protocol === 'UDP' && fields.number === CIRCUIT_BREAKERS) continue;
    if (!OURS.includes(fields.number))
      found.push(Buffer.from(cluster.subarray(fields.start, fields.end)).toString('hex'));
  }
  return found;
}

const OTHERS = [{ name: 'Service/default/shop:80', envoyGatewayName: 'a/tls/0' }];

describe('a cluster of a mesh backend', () => {
  it.each(EVERY_KIND)('keeps every other field: %s', (_, wanted) => {
    const cluster = gatewayCluster([bytesField(59, Buffer.from('new')), varintField(5000, 7)]);
    expect(foreign(mesh(cluster, wanted), wanted)).toEqual(foreign(cluster, wanted));
  });

  it.each(EVERY_KIND)('is unchanged by a second edit: %s', (_, wanted) => {
    for (const cluster of [gatewayCluster(), gatewayCluster([proxyProtocol()])]) {
      const once = mesh(cluster, wanted);
      expect(mesh(once, wanted)).toEqual(once);
    }
  });

  it.each(EVERY_KIND)('is the same on another server with equal settings: %s', (_, wanted) => {
    const other = envoyClusterEditor({ target: TARGET });
    expect(other(gatewayCluster(), structuredClone(wanted))).toEqual(mesh(gatewayCluster(), wanted));
  });

  it('is edited again if its bytes differ, even in the same buffer', () => {
    const wanted = settings();
    const given = Buffer.from(gatewayCluster([varintField(5000, 7)]));
    const first = mesh(given, wanted);
    given[given.length - 1] = 8;
    expect(foreign(mesh(given, wanted))).toEqual(foreign(given));
    expect(foreign(mesh(given, wanted))).not.toEqual(foreign(first));
    expect(mesh(gatewayCluster([varintField(5000, 7)]), wanted)).toEqual(first);
  });

  it('is edited at any size, and with any number of others', () => {
    const wanted = settings();
    const clusters = [1, 2, 3, 4].map(value =>
      gatewayCluster([varintField(5000, value), bytesField(5001, Buffer.alloc(value * 8192))]),
    );
    for (const cluster of [...clusters, ...clusters])
      expect(foreign(mesh(cluster, wanted))).toEqual(foreign(cluster));
  });

  it('keeps unknown fields and their order', () => {
    const unknown = fc.array(anyField(fc.integer({ min: 100, max: 2 ** 29 - 1 })), { maxLength: 6 });
    fc.assert(
      fc.property(unknown, unknown, fc.constantFrom(...EVERY_KIND), (before, after, [, wanted]) => {
        const cluster = concat([...before, gatewayCluster(after)]);
        const changed = mesh(cluster, wanted);
        expect(foreign(changed, wanted)).toEqual(foreign(cluster, wanted));
        expect(mesh(changed, wanted)).toEqual(changed);
      }),
      { seed },
    );
  });

  it('is returned unchanged if it is malformed, and else edited validly', () => {
    const clusters = fc
      .array(anyField(fc.constantFrom(...OURS, CIRCUIT_BREAKERS, 1, 2)), { maxLength: 4 })
      .map(more => gatewayCluster(more));
    fc.assert(
      fc.property(hostileBytes(clusters), fc.constantFrom(...EVERY_KIND), (bytes, [, wanted]) => {
        const once = mesh(bytes, wanted);
        expect(mesh(once, wanted)).toEqual(once);
      }),
      { seed, numRuns: 2000 },
    );
  });

  it.each([
    ['has another type', varintField(2, 1), [2]],
    ['has a type of an extension', bytesField(38, EMPTY), [2]],
    ['has both types', bytesField(38, EMPTY), []],
    ['has no type', EMPTY, [2]],
    ['cannot be read', Uint8Array.of(0x0a, 0x05, 0x01), []],
  ])('is returned unchanged if it %s', (_, more, without) => {
    const cluster = gatewayCluster([more], { without });
    expect(mesh(cluster, settings())).toBe(cluster);
  });
});

describe('its endpoints', () => {
  it('come from the extension server by EDS, with fast reconnection, by its own name', () => {
    const { edsClusterConfig } = read(mesh(gatewayCluster(), settings()));
    expect(edsClusterConfig?.serviceName).toBe(settings().cluster);
    expect(edsClusterConfig?.edsConfig).toMatchObject({
      initialFetchTimeout: { seconds: 60n },
      resourceApiVersion: 2,
    });
    const source = edsClusterConfig?.edsConfig?.configSourceSpecifier;
    expect(source).toMatchObject({ case: 'apiConfigSource', value: { apiType: 3, transportApiVersion: 2 } });
    const services = source?.case === 'apiConfigSource' ? source.value.grpcServices : [];
    const google = services.map(({ targetSpecifier }) => targetSpecifier.value);
    expect(google).toMatchObject([{ targetUri: TARGET, statPrefix: 'mesh_eds' }]);
    expect(google[0]?.channelArgs?.args['grpc.max_reconnect_backoff_ms']?.valueSpecifier.value).toBe(200n);
    expect(google[0]?.channelArgs?.args['grpc.initial_reconnect_backoff_ms']?.valueSpecifier.value).toBe(
      200n,
    );
  });

  it('come from the extension server in a mixed rule too', () => {
    const after = read(mesh(gatewayCluster(), settings({ otherSockets: OTHERS }))).edsClusterConfig;
    expect(after?.edsConfig?.configSourceSpecifier.case).toBe('apiConfigSource');
  });
});

describe('the sockets of other backends of its rule', () => {
  const others = [
    { name: 'Service/default/shop:80', envoyGatewayName: 'c/tls/0' },
    { name: 'Service/default/vault:443', envoyGatewayName: 'c/tls/1' },
  ];
  const wanted = settings({ defaultSocket: { is: 'closed' }, otherSockets: others });
  const made = { name: 'c/tls/1', match: { name: 'c/tls/1' }, transportSocket: { name: 'of a policy' } };
  const match = bytesField(
    43,
    toBinary(Cluster_TransportSocketMatchSchema, create(Cluster_TransportSocketMatchSchema, made)),
  );

  it('are those that Envoy Gateway made, and else clear', () => {
    const after = mesh(gatewayCluster([match]), wanted);
    const found = read(after).transportSocketMatches.map(each => [
      each.name,
      each.match,
      each.transportSocket?.name,
    ]);
    expect(found).toEqual([
      [
        'mesh/Service/default/shop:80',
        { mesh: 'Service/default/shop:80' },
        'envoy.transport_sockets.http_11_proxy',
      ],
      ['mesh/Service/default/vault:443', { mesh: 'Service/default/vault:443' }, 'of a policy'],
      ['c/tls/1', { name: 'c/tls/1' }, 'of a policy'],
    ]);
    expect(mesh(after, wanted)).toEqual(after);
  });

  it('is one for a backend that is twice in the rule', () => {
    const twice = settings({ otherSockets: [...OTHERS, ...OTHERS] });
    expect(read(mesh(gatewayCluster(), twice)).transportSocketMatches).toHaveLength(1);
  });
});

describe('its socket', () => {
  const TUNNEL = 'envoy.transport_sockets.http_11_proxy';
  const PROXY = 'envoy.transport_sockets.upstream_proxy_protocol';

  it.each([
    ['clear', settings(), [TUNNEL, 'envoy.transport_sockets.raw_buffer']],
    ['TLS', settings({ defaultSocket: tlsSocket() }), [TUNNEL, 'envoy.transport_sockets.tls']],
    ['closed', settings({ defaultSocket: { is: 'closed' } }), [TUNNEL, 'envoy.transport_sockets.tls']],
    ['none for datagrams', datagrams(), ['nothing']],
  ])('is http_11_proxy around the upstream socket: %s', (_, wanted, layers) => {
    expect(opened(read(mesh(gatewayCluster(), wanted)).transportSocket).layers).toEqual(layers);
  });

  it('keeps the PROXY protocol of a policy, with our TLS inside it', () => {
    const cluster = read(
      mesh(
        gatewayCluster([proxyProtocol()]),
        settings({
          defaultSocket: tlsSocket(),
          socketMatches: [{ name: 'a', socket: tlsSocket({ minVersion: '1.3' }) }],
        }),
      ),
    );
    expect(opened(cluster.transportSocket).layers).toEqual([TUNNEL, PROXY, 'envoy.transport_sockets.tls']);
    expect(opened(cluster.transportSocketMatches[0]?.transportSocket).layers).toEqual([
      TUNNEL,
      PROXY,
      'envoy.transport_sockets.tls',
    ]);
  });

  it('keeps unknown fields of the PROXY protocol', () => {
    const changed = Buffer.from(mesh(gatewayCluster([proxyProtocol()]), settings())).toString('hex');
    expect(changed).toContain('0a020801');
    expect(changed).toContain('2001');
  });

  it('changes with the settings', () => {
    const clear = mesh(gatewayCluster([proxyProtocol()]), settings());
    const secure = mesh(clear, settings({ defaultSocket: tlsSocket() }));
    expect(opened(read(secure).transportSocket).layers).toEqual([
      TUNNEL,
      PROXY,
      'envoy.transport_sockets.tls',
    ]);
    expect(secure).toEqual(mesh(gatewayCluster([proxyProtocol()]), settings({ defaultSocket: tlsSocket() })));
  });

  it('is one of several matches, which endpoints select by name, before those of others', () => {
    const theirs = bytesField(43, bytesField(1, Buffer.from('httproute/a/tls/0')));
    const wanted = settings({
      socketMatches: [
        { name: 'b', socket: tlsSocket() },
        { name: 'clear', socket: { is: 'clear' } },
      ],
    });
    const once = mesh(gatewayCluster([theirs]), wanted);
    expect(read(once).transportSocketMatches.map(({ name, match }) => [name, match])).toEqual([
      ['mesh/b', { mesh: 'b' }],
      ['mesh/clear', { mesh: 'clear' }],
      ['httproute/a/tls/0', undefined],
    ]);
    const less = read(mesh(once, settings())).transportSocketMatches;
    expect(less.map(({ name }) => name)).toEqual(['httproute/a/tls/0']);
  });
});

describe('its panic threshold', () => {
  it('is zero if no policy sets it, beside other settings', () => {
    const cluster = gatewayCluster([bytesField(27, bytesField(4, varintField(1, 9)))]);
    const { commonLbConfig } = read(mesh(cluster, settings()));
    expect(commonLbConfig?.healthyPanicThreshold?.value).toBe(0);
    expect(commonLbConfig?.$unknown?.map(({ no }) => no)).toEqual([4]);
  });

  it('is the one that a policy sets', () => {
    const policy = Uint8Array.from(Buffer.from('0a0909000000000000 3e40'.replaceAll(' ', ''), 'hex'));
    const { commonLbConfig } = read(mesh(gatewayCluster([bytesField(27, policy)]), settings()));
    expect(commonLbConfig?.healthyPanicThreshold?.value).toBe(30);
  });
});

describe('its UDP sessions', () => {
  const thresholds = (...fields: readonly Uint8Array[]) => bytesField(1, concat(fields));
  const max = (number: number) => bytesField(2, varintField(1, number));
  const retries = bytesField(5, varintField(1, 1024));
  const high = concat([varintField(1, 1), retries]);
  const breakersOf = (breakers: readonly Uint8Array[], wanted = datagrams()) => {
    const given = bytesField(CIRCUIT_BREAKERS, concat(breakers));
    const edited = mesh(gatewayCluster([given], { without: [CIRCUIT_BREAKERS] }), wanted);
    return bytesOf(edited, CIRCUIT_BREAKERS);
  };

  it('are 16,384, beside other thresholds, where they would be the 1,024 of Envoy', () => {
    expect(breakersOf([thresholds(retries), thresholds(high)])).toEqual(
      concat([thresholds(retries, max(16_384)), thresholds(high)]),
    );
    expect(breakersOf([])).toEqual(thresholds(max(16_384)));
    const without = mesh(gatewayCluster([], { without: [CIRCUIT_BREAKERS] }), datagrams());
    expect(bytesOf(without, CIRCUIT_BREAKERS)).toEqual(thresholds(max(16_384)));
  });

  it.each([
    ['where they are set', [thresholds(max(7), retries)], datagrams()],
    ['where the first thresholds are of another priority', [thresholds(high)], datagrams()],
    ['of another protocol', [thresholds(retries)], settings({ protocol: 'TCP' })],
  ])('are left as they are %s', (_, breakers, wanted) => {
    expect(breakersOf(breakers, wanted)).toEqual(concat(breakers));
  });
});

describe('its health checks', () => {
  it('are those of a policy if it sets them', () => {
    const policy = bytesField(8, varintField(500, 1));
    const { healthChecks } = read(mesh(gatewayCluster([policy]), settings({ healthCheck: HTTP_CHECK })));
    expect(healthChecks).toHaveLength(1);
    expect(healthChecks[0]?.healthChecker.case).toBeUndefined();
  });

  it('are absent if the settings have none', () => {
    expect(read(mesh(gatewayCluster(), settings())).healthChecks).toEqual([]);
  });
});

describe('its outlier detection', () => {
  const detection = (...fields: readonly Uint8Array[]) => bytesField(OUTLIER_DETECTION, concat(fields));
  const consecutive5xx = bytesField(1, varintField(1, 5));
  const endsEjections = (value: Uint8Array) => bytesField(23, value);
  const detectionOf = (given: readonly Uint8Array[], wanted = settings({ healthCheck: HTTP_CHECK })) =>
    bytesOf(mesh(gatewayCluster(given), wanted), OUTLIER_DETECTION);

  it('keeps endpoints ejected while the health check that is added succeeds', () => {
    expect(detectionOf([detection(consecutive5xx)])).toEqual(concat([consecutive5xx, endsEjections(EMPTY)]));
  });

  it.each([
    ['as it is without a health check', [detection(consecutive5xx)], settings()],
    [
      'as it is beside a health check of a policy',
      [detection(consecutive5xx), bytesField(8, EMPTY)],
      undefined,
    ],
    ['absent without a policy', [], undefined],
  ])('is %s', (_, given, wanted) => {
    expect(detectionOf(given, wanted)).toEqual(bytesOf(gatewayCluster(given), OUTLIER_DETECTION));
  });
});

describe('its HTTP version', () => {
  const timeouts = bytesField(1, bytesField(1, varintField(1, 60)));
  const http1 = bytesField(1, varintField(5, 1));
  const http2 = bytesField(2, bytesField(1, varintField(1, 4096)));

  /** The options that a cluster has, as fields in hex. */
  function optionsIn(cluster: Uint8Array): string | undefined {
    const options = read(cluster).typedExtensionProtocolOptions;
    const found = options['envoy.extensions.upstreams.http.v3.HttpProtocolOptions'];
    return found && Buffer.from(found.value).toString('hex');
  }
  const hex = (...parts: readonly Uint8Array[]) => Buffer.from(concat(parts)).toString('hex');

  it.each([
    ['nothing for HTTP/1.1, which is the default of Envoy', 'HTTP/1.1', undefined, undefined],
    ['HTTP/2', 'HTTP/2', undefined, hex(bytesField(3, bytesField(2, EMPTY)))],
    [
      'HTTP/2 for HTTP/1.1',
      'HTTP/2',
      [timeouts, bytesField(3, http1)],
      hex(timeouts, bytesField(3, bytesField(2, EMPTY))),
    ],
    [
      'HTTP/2 as a policy set it',
      'HTTP/2',
      [timeouts, bytesField(3, http2)],
      hex(timeouts, bytesField(3, http2)),
    ],
    [
      "HTTP/2 for the client's, with its settings",
      'HTTP/2',
      [bytesField(4, concat([http1, http2])), timeouts],
      hex(timeouts, bytesField(3, http2)),
    ],
    [
      "HTTP/1.1 for the client's, with its settings",
      'HTTP/1.1',
      [bytesField(4, concat([http1, http2])), timeouts],
      hex(timeouts, bytesField(3, http1)),
    ],
    [
      "HTTP/1.1 for TLS's choice",
      'HTTP/1.1',
      [bytesField(5, EMPTY)],
      hex(bytesField(3, bytesField(1, EMPTY))),
    ],
    [
      'HTTP/1.1 as a policy set it',
      'HTTP/1.1',
      [bytesField(3, http1), varintField(99, 1)],
      hex(bytesField(3, http1), varintField(99, 1)),
    ],
    [
      'a version where there must be one',
      'HTTP/1.1',
      [timeouts],
      hex(timeouts, bytesField(3, bytesField(1, EMPTY))),
    ],
    ['no change for TCP', 'TCP', [bytesField(3, http2)], hex(bytesField(3, http2))],
    [
      "HTTP/1.1 for TLS's choice under raw bytes, which Envoy would refuse",
      'TCP',
      [bytesField(5, EMPTY)],
      hex(bytesField(3, bytesField(1, EMPTY))),
    ],
  ] as const)('is set, and other options are kept: %s', (_, protocol, before, after) => {
    const cluster = gatewayCluster(before ? [httpOptions(concat(before))] : []);
    expect(optionsIn(mesh(cluster, settings({ protocol })))).toBe(after);
  });

  it.each([
    ['HTTP/2 is kept if other backends need it', 'HTTP/1.1', http2, bytesField(3, http2)],
    ['HTTP/2 is set if mesh backends need it', 'HTTP/2', http1, bytesField(3, bytesField(2, EMPTY))],
  ] as const)(
    'is HTTP/2 in a mixed rule as soon as one backend needs it: %s',
    (_, protocol, before, after) => {
      const cluster = gatewayCluster([httpOptions(bytesField(3, before))]);
      expect(optionsIn(mesh(cluster, settings({ protocol, otherSockets: OTHERS })))).toBe(hex(after));
    },
  );

  it('keeps the options of other extensions', () => {
    const others = bytesField(36, bytesField(1, Buffer.from('envoy.other')));
    const { typedExtensionProtocolOptions } = read(
      mesh(gatewayCluster([others]), settings({ protocol: 'HTTP/2' })),
    );
    expect(Object.keys(typedExtensionProtocolOptions)).toContain('envoy.other');
    expect(Object.keys(typedExtensionProtocolOptions)).toHaveLength(2);
  });
});
