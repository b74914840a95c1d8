import { create, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { envoyClusterEditor } from '../../../src/extension/envoy-cluster/envoy-cluster.ts';
import { Cluster_TransportSocketMatchSchema } from '../../../src/extension/proto/envoy/config/cluster/v3_pb.ts';
import { bytesField, Fields, concat } from '../../../src/extension/wire.ts';
import { varintField } from '../../support/extension/varint-field.ts';
import {
  gatewayCluster,
  httpOptions,
  opened,
  proxyProtocol,
  read,
} from '../../support/extension/clusters.ts';
import { anyField, hostileBytes, seed } from '../../support/extension/messages.ts';
import { datagrams, EVERY_KIND, needs, tlsSocket, HTTP_CHECK } from '../../support/extension/needs.ts';

const TARGET = 'mesh-extension-server.mesh-system.svc.cluster.local:5005';
const mesh = envoyClusterEditor({ target: TARGET });
const EMPTY = new Uint8Array();

/** The numbers of the fields that may be set in a cluster. */
const OURS = [3, 8, 24, 27, 36, 43];

/** The fields of a cluster that are never ours, each whole. */
function foreign(cluster: Uint8Array): readonly string[] {
  const fields = new Fields(cluster);
  const found: string[] = [];
  while (fields.next()) {
    if (!OURS.includes(fields.number))
      found.push(Buffer.from(cluster.subarray(fields.start, fields.end)).toString('hex'));
  }
  return found;
}

const OTHERS = [{ name: 'Service/default/shop:80', envoyGatewayName: 'a/tls/0' }];

describe('a cluster of a mesh backend', () => {
  it.each(EVERY_KIND)('keeps every field that is not ours: %s', (_, wanted) => {
    const cluster = gatewayCluster([bytesField(59, Buffer.from('new')), varintField(5000, 7)]);
    expect(foreign(mesh(cluster, wanted))).toEqual(foreign(cluster));
  });

  it.each(EVERY_KIND)('is left alone the second time: %s', (_, wanted) => {
    for (const cluster of [gatewayCluster(), gatewayCluster([proxyProtocol()])]) {
      const once = mesh(cluster, wanted);
      expect(mesh(once, wanted)).toEqual(once);
    }
  });

  it.each(EVERY_KIND)('is the same from another server with equal needs: %s', (_, wanted) => {
    const other = envoyClusterEditor({ target: TARGET });
    expect(other(gatewayCluster(), structuredClone(wanted))).toEqual(mesh(gatewayCluster(), wanted));
  });

  it('is made anew when it comes with other bytes, even in the place of the first', () => {
    const wanted = needs();
    const given = Buffer.from(gatewayCluster([varintField(5000, 7)]));
    const first = mesh(given, wanted);
    given[given.length - 1] = 8;
    expect(foreign(mesh(given, wanted))).toEqual(foreign(given));
    expect(foreign(mesh(given, wanted))).not.toEqual(foreign(first));
    expect(mesh(gatewayCluster([varintField(5000, 7)]), wanted)).toEqual(first);
  });

  it('is made however big it is, and whichever of many it is', () => {
    const wanted = needs();
    const clusters = [1, 2, 3, 4].map(value =>
      gatewayCluster([varintField(5000, value), bytesField(5001, Buffer.alloc(value * 8192))]),
    );
    for (const cluster of [...clusters, ...clusters])
      expect(foreign(mesh(cluster, wanted))).toEqual(foreign(cluster));
  });

  it('keeps any fields that this code does not know, where they are', () => {
    const unknown = fc.array(anyField(fc.integer({ min: 100, max: 2 ** 29 - 1 })), { maxLength: 6 });
    fc.assert(
      fc.property(unknown, unknown, fc.constantFrom(...EVERY_KIND), (before, after, [, wanted]) => {
        const cluster = concat([...before, gatewayCluster(after)]);
        const changed = mesh(cluster, wanted);
        expect(foreign(changed)).toEqual(foreign(cluster));
        expect(mesh(changed, wanted)).toEqual(changed);
      }),
      { seed },
    );
  });

  it('is given back whole where it is hostile, or else changed without harm', () => {
    const clusters = fc
      .array(anyField(fc.constantFrom(...OURS, 1, 2)), { maxLength: 4 })
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
  ])('is given back where it %s', (_, more, without) => {
    const cluster = gatewayCluster([more], { without });
    expect(mesh(cluster, needs())).toBe(cluster);
  });
});

describe('its endpoints', () => {
  it('come from our EDS, with fast reconnection, by its own name', () => {
    const { edsClusterConfig } = read(mesh(gatewayCluster(), needs()));
    expect(edsClusterConfig?.serviceName).toBe(needs().cluster);
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

  it('come from us too in a rule that mixes ours with others', () => {
    const after = read(mesh(gatewayCluster(), needs({ otherSockets: OTHERS }))).edsClusterConfig;
    expect(after?.edsConfig?.configSourceSpecifier.case).toBe('apiConfigSource');
  });
});

describe('the sockets of other backends of its rule', () => {
  const others = [
    { name: 'Service/default/shop:80', envoyGatewayName: 'c/tls/0' },
    { name: 'Service/default/vault:443', envoyGatewayName: 'c/tls/1' },
  ];
  const wanted = needs({ defaultSocket: { is: 'closed' }, otherSockets: others });
  const made = { name: 'c/tls/1', match: { name: 'c/tls/1' }, transportSocket: { name: 'of a policy' } };
  const match = bytesField(
    43,
    toBinary(Cluster_TransportSocketMatchSchema, create(Cluster_TransportSocketMatchSchema, made)),
  );

  it('are clear where Envoy Gateway has made none, and else as it made them', () => {
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

  it('is one for a backend that stands twice in the rule', () => {
    const twice = needs({ otherSockets: [...OTHERS, ...OTHERS] });
    expect(read(mesh(gatewayCluster(), twice)).transportSocketMatches).toHaveLength(1);
  });
});

describe('its socket', () => {
  const TUNNEL = 'envoy.transport_sockets.http_11_proxy';
  const PROXY = 'envoy.transport_sockets.upstream_proxy_protocol';

  it.each([
    ['clear', needs(), [TUNNEL, 'envoy.transport_sockets.raw_buffer']],
    ['TLS', needs({ defaultSocket: tlsSocket() }), [TUNNEL, 'envoy.transport_sockets.tls']],
    ['closed', needs({ defaultSocket: { is: 'closed' } }), [TUNNEL, 'envoy.transport_sockets.tls']],
    ['none for datagrams', datagrams(), ['nothing']],
  ])('is a tunnel around what is spoken: %s', (_, wanted, layers) => {
    expect(opened(read(mesh(gatewayCluster(), wanted)).transportSocket).layers).toEqual(layers);
  });

  it('keeps the PROXY protocol that a policy asks for, with our TLS inside of it', () => {
    const cluster = read(
      mesh(
        gatewayCluster([proxyProtocol()]),
        needs({
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

  it('keeps of the PROXY protocol what this code does not know', () => {
    const changed = Buffer.from(mesh(gatewayCluster([proxyProtocol()]), needs())).toString('hex');
    expect(changed).toContain('0a020801');
    expect(changed).toContain('2001');
  });

  it('follows the needs when they change', () => {
    const clear = mesh(gatewayCluster([proxyProtocol()]), needs());
    const secure = mesh(clear, needs({ defaultSocket: tlsSocket() }));
    expect(opened(read(secure).transportSocket).layers).toEqual([
      TUNNEL,
      PROXY,
      'envoy.transport_sockets.tls',
    ]);
    expect(secure).toEqual(mesh(gatewayCluster([proxyProtocol()]), needs({ defaultSocket: tlsSocket() })));
  });

  it('is one of several, which endpoints choose by name, before those of others', () => {
    const theirs = bytesField(43, bytesField(1, Buffer.from('httproute/a/tls/0')));
    const wanted = needs({
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
    const less = read(mesh(once, needs())).transportSocketMatches;
    expect(less.map(({ name }) => name)).toEqual(['httproute/a/tls/0']);
  });
});

describe('its panic threshold', () => {
  it('is zero where no policy sets one, beside what else is set there', () => {
    const cluster = gatewayCluster([bytesField(27, bytesField(4, varintField(1, 9)))]);
    const { commonLbConfig } = read(mesh(cluster, needs()));
    expect(commonLbConfig?.healthyPanicThreshold?.value).toBe(0);
    expect(commonLbConfig?.$unknown?.map(({ no }) => no)).toEqual([4]);
  });

  it('is the one that a policy sets', () => {
    const policy = Uint8Array.from(Buffer.from('0a0909000000000000 3e40'.replaceAll(' ', ''), 'hex'));
    const { commonLbConfig } = read(mesh(gatewayCluster([bytesField(27, policy)]), needs()));
    expect(commonLbConfig?.healthyPanicThreshold?.value).toBe(30);
  });
});

describe('its checks', () => {
  it('are those of a policy where one sets them', () => {
    const policy = bytesField(8, varintField(500, 1));
    const { healthChecks } = read(mesh(gatewayCluster([policy]), needs({ healthCheck: HTTP_CHECK })));
    expect(healthChecks).toHaveLength(1);
    expect(healthChecks[0]?.healthChecker.case).toBeUndefined();
  });

  it('are not there without a wish', () => {
    expect(read(mesh(gatewayCluster(), needs())).healthChecks).toEqual([]);
  });
});

describe('its version of HTTP', () => {
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
    ['nothing for HTTP/1.1, which Envoy speaks anyway', 'HTTP/1.1', undefined, undefined],
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
    ['no change for raw bytes', 'TCP', [bytesField(3, http2)], hex(bytesField(3, http2))],
    [
      "HTTP/1.1 for TLS's choice under raw bytes, which Envoy would refuse",
      'TCP',
      [bytesField(5, EMPTY)],
      hex(bytesField(3, bytesField(1, EMPTY))),
    ],
  ] as const)('is chosen by us, and all else stays: %s', (_, protocol, before, after) => {
    const cluster = gatewayCluster(before ? [httpOptions(concat(before))] : []);
    expect(optionsIn(mesh(cluster, needs({ protocol })))).toBe(after);
  });

  it.each([
    ['HTTP/2 stays where others have it', 'HTTP/1.1', http2, bytesField(3, http2)],
    ['HTTP/2 comes where ours need it', 'HTTP/2', http1, bytesField(3, bytesField(2, EMPTY))],
  ] as const)(
    'is HTTP/2 in a rule that mixes ours with others as soon as one needs it: %s',
    (_, protocol, before, after) => {
      const cluster = gatewayCluster([httpOptions(bytesField(3, before))]);
      expect(optionsIn(mesh(cluster, needs({ protocol, otherSockets: OTHERS })))).toBe(hex(after));
    },
  );

  it('leaves options of others alone', () => {
    const others = bytesField(36, bytesField(1, Buffer.from('envoy.other')));
    const { typedExtensionProtocolOptions } = read(
      mesh(gatewayCluster([others]), needs({ protocol: 'HTTP/2' })),
    );
    expect(Object.keys(typedExtensionProtocolOptions)).toContain('envoy.other');
    expect(Object.keys(typedExtensionProtocolOptions)).toHaveLength(2);
  });
});
