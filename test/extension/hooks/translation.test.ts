import { fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { envoyRouteEditor } from '../../../src/extension/envoy-route/envoy-route.ts';
import { PostTranslateModifyResponseSchema } from '../../../src/extension/proto/envoygateway/extension_pb.ts';
import { bytesField, Fields, concat } from '../../../src/extension/wire.ts';
import { varintField } from '../../support/extension/varint-field.ts';
import { CLUSTER, gatewayCluster, read } from '../../support/extension/clusters.ts';
import { bindingObject, startHooks, translation, whole } from '../../support/extension/hooks.ts';
import { anyMessage, seed } from '../../support/extension/messages.ts';
import { plainRoute, routeConfiguration, weightedRoute } from '../../support/extension/routes.ts';
import { settings, tlsSocket } from '../../support/extension/cluster-settings.ts';

const METHOD = 'PostTranslateModify';
const settingsOf = (name: string) =>
  name.startsWith('httproute/shop/') ? settings({ cluster: name }) : undefined;
const named = (name: string) => gatewayCluster([], { name });
const longSettings = (cluster: string) => settings({ cluster, defaultSocket: tlsSocket() });

function answered(request: Uint8Array, given = settingsOf) {
  const { call, recorded } = startHooks({ settingsOf: given });
  return { ...fromBinary(PostTranslateModifyResponseSchema, whole(call(METHOD, request))), recorded };
}

/** The numbers of the fields of a message, in their order. */
function numbersIn(message: Uint8Array): readonly number[] {
  const fields = new Fields(message);
  const numbers: number[] = [];
  while (fields.next()) numbers.push(fields.number);
  return numbers;
}

describe('the Translation hook', () => {
  it('edits the clusters of mesh backends, and keeps all other clusters and lists', () => {
    const others = [
      named('httproute/other/a/rule/0'),
      named('tcproute/other/a/rule/-1'),
      named('xds_cluster'),
    ];
    const clusters = [
      others[0],
      named(CLUSTER),
      others[1],
      named('httproute/shop/b/rule/3'),
      others[2],
    ] as Uint8Array[];
    const lists = [[1], [2, 2], [3]].map(list => list.map(value => varintField(9, value)));
    const [secrets = [], listeners = [], routes = []] = lists;
    const answer = answered(translation({ clusters, secrets, listeners, routes }, [bindingObject('1')]));
    expect([answer.secrets, answer.listeners, answer.routes]).toEqual([secrets, listeners, routes]);
    expect([0, 2, 4].map(at => answer.clusters[at])).toEqual(others);
    const targets = [1, 3].map(at => read(answer.clusters[at] ?? new Uint8Array()).edsClusterConfig);
    expect(targets.map(config => config?.edsConfig?.configSourceSpecifier.case)).toEqual([
      'apiConfigSource',
      'apiConfigSource',
    ]);
    expect(targets.map(config => config?.serviceName)).toEqual([CLUSTER, 'httproute/shop/b/rule/3']);
    expect(answer.recorded.clusters).toEqual(['translation', 'translation']);
  });

  it('adds a cluster for each MeshEndpoints of a rule with filters, and routes to these', () => {
    const of = (index: number) => ({ cluster: `${CLUSTER}/backend/${index}`, weight: index + 1 });
    const shares = { total: 3, mesh: [of(0)], others: [of(1)] };
    const sharesOf = (rule: string) => (rule === CLUSTER ? shares : undefined);
    const { call } = startHooks({ settingsOf, sharesOf });
    const others = [named('a'), named('b')] as const;
    const request = translation({
      clusters: [others[0], named(CLUSTER), others[1]],
      routes: [routeConfiguration(plainRoute('httproute/other/a/rule/0'), plainRoute(CLUSTER))],
    });
    const answer = fromBinary(PostTranslateModifyResponseSchema, whole(call(METHOD, request)));
    const clusters = answer.clusters.map(cluster => read(cluster));
    const ours = [CLUSTER, of(0).cluster, of(1).cluster];
    expect(clusters.map(({ name }) => name)).toEqual(['a', ...ours, 'b']);
    expect(clusters.slice(1, 4).map(({ edsClusterConfig }) => edsClusterConfig?.serviceName)).toEqual(ours);
    expect([answer.clusters[0], answer.clusters[4]]).toEqual(others);
    const [routes = new Uint8Array()] = answer.routes;
    expect(routes).toEqual(
      envoyRouteEditor({ sharesOf, isProxied: () => false }).editRoutes(
        routeConfiguration(plainRoute('httproute/other/a/rule/0'), plainRoute(CLUSTER)),
      ),
    );
    expect(Buffer.from(routes).includes(of(1).cluster)).toBe(true);
  });

  it('leaves a cluster that resolves host names to Envoy Gateway, with one of EDS for MeshEndpoints beside it', () => {
    const beside = `${CLUSTER}/backend/0`;
    const shares = {
      total: 4,
      mesh: [{ cluster: beside, weight: 1 }],
      others: [{ cluster: CLUSTER, weight: 3 }],
      isApart: true,
    } as const;
    const given = gatewayCluster(
      [
        bytesField(33, bytesField(1, Buffer.from(CLUSTER))),
        bytesField(38, bytesField(1, Buffer.from('dns'))),
      ],
      {
        without: [2, 3],
      },
    );
    const { call } = startHooks({
      settingsOf: name => (name === beside ? settings({ cluster: beside }) : undefined),
      sharesOf: rule => (rule === CLUSTER ? shares : undefined),
    });
    const request = translation({ clusters: [given], routes: [routeConfiguration(plainRoute(CLUSTER))] });
    const answer = fromBinary(PostTranslateModifyResponseSchema, whole(call(METHOD, request)));
    expect(answer.clusters).toHaveLength(2);
    const [own, added = new Uint8Array()] = answer.clusters;
    expect(own).toEqual(given);
    expect(numbersIn(added)).not.toContain(33);
    expect(numbersIn(added)).not.toContain(38);
    const cluster = read(added);
    expect(cluster.clusterDiscoveryType).toEqual({ case: 'type', value: 3 });
    expect(cluster).toMatchObject({ name: beside, edsClusterConfig: { serviceName: beside } });
    const [routes = new Uint8Array()] = answer.routes;
    expect(Buffer.from(routes).includes(beside)).toBe(true);
  });

  it('names the cluster of MeshEndpoints after the rule while another backend is away', () => {
    const of = (index: number) => ({ cluster: `${CLUSTER}/backend/${index}`, weight: index + 1 });
    const shares = { total: 6, mesh: [of(0), of(1)] };
    const { call } = startHooks({ settingsOf, sharesOf: rule => (rule === CLUSTER ? shares : undefined) });
    const clusters = [named(of(0).cluster), named(of(1).cluster), named(`${CLUSTER}/backend/2`)];
    const given = weightedRoute(CLUSTER, [{ name: 'invalid-backend-cluster', weight: 3 }]);
    const request = translation({ clusters, routes: [routeConfiguration(given)] });
    const answer = fromBinary(PostTranslateModifyResponseSchema, whole(call(METHOD, request)));
    const [first = new Uint8Array(), ...others] = answer.clusters;
    expect(read(first)).toMatchObject({ name: CLUSTER, edsClusterConfig: { serviceName: CLUSTER } });
    expect(others).toEqual(clusters.slice(1));
  });

  it('keeps clusters unchanged for which the response has no room, and logs that', () => {
    const names = ['a', 'b', 'c'].map(name => `httproute/shop/${name}/rule/0`);
    const clusters = [...names.map(named), named('httproute/other/a/rule/0')];
    const request = translation({ clusters });
    const settingsOf = (name: string) => (names.includes(name) ? longSettings(name) : undefined);
    const { length } = whole(startHooks({ settingsOf }).call(METHOD, request));
    for (const [messageBytes, expected] of [
      [length, []],
      [length - 1, [names[2]]],
      [request.length, names],
    ] as const) {
      const { call, recorded } = startHooks({ settingsOf, messageBytes });
      const answer = whole(call(METHOD, request));
      const given = fromBinary(PostTranslateModifyResponseSchema, answer).clusters;
      const left = given.filter((cluster, at) => Buffer.compare(cluster, clusters[at] ?? cluster) === 0);
      expect(left.slice(0, -1).map(cluster => read(cluster).name)).toEqual(expected);
      expect([given.length, recorded.clusters.length]).toEqual([4, 3 - expected.length]);
      expect([answer.length <= messageBytes, recorded.failures.length]).toEqual([true, expected.length]);
      expect(recorded.lines.map(([, fields]) => fields)).toMatchObject(
        expected.slice(0, 1).map(name => ({ name, hook: 'translation' })),
      );
    }
  });

  it('rejects only a request of far more fields than clusters can have', () => {
    const { call } = startHooks();
    const clusters = (count: number) => Buffer.alloc(2 * count, bytesField(2, new Uint8Array()));
    expect(whole(call(METHOD, clusters(100_000)))).toHaveLength(200_000);
    for (const tag of [1, 2, 7]) {
      const request = Buffer.alloc(400_000, bytesField(tag, new Uint8Array()));
      expect(() => call(METHOD, request)).toThrow('far more fields');
    }
  });

  it('returns identical bytes if there are no mesh clusters', () => {
    const lists = fc.record({
      clusters: fc.array(fc.oneof(anyMessage(), fc.constant(named('httproute/other/a/rule/0'))), {
        maxLength: 5,
      }),
      secrets: fc.array(anyMessage(), { maxLength: 2 }),
      listeners: fc.array(anyMessage(), { maxLength: 2 }),
      routes: fc.array(anyMessage(), { maxLength: 2 }),
    });
    const { call } = startHooks({ settingsOf });
    fc.assert(
      fc.property(lists, given => {
        const expected = [given.clusters, given.secrets, given.listeners, given.routes].flatMap((list, at) =>
          list.map(value => bytesField(at + 1, value)),
        );
        expect(whole(call(METHOD, translation(given, [bindingObject('1')])))).toEqual(concat(expected));
      }),
      { seed },
    );
  });

  it('does not add lists that were not sent', () => {
    const { call } = startHooks({ settingsOf });
    expect(whole(call(METHOD, translation({}, [bindingObject('1')])))).toEqual(new Uint8Array());
    expect(numbersIn(whole(call(METHOD, translation({ listeners: [new Uint8Array()] }))))).toEqual([3]);
  });

  it('keeps the order of the request, and leaves out other fields', () => {
    const request = concat([
      bytesField(5, varintField(9, 5)),
      bytesField(2, named(CLUSTER)),
      varintField(3, 1),
      bytesField(6, varintField(9, 6)),
      bytesField(3, varintField(9, 3)),
      bytesField(2, named('a')),
    ]);
    const { call } = startHooks({ settingsOf });
    expect(numbersIn(whole(call(METHOD, request)))).toEqual([4, 1, 2, 1]);
  });

  it('reads overlong tags and lengths', () => {
    const request = Uint8Array.of(0x92, 0x00, 0x82, 0x00, 0x08, 0x01, 0x1a, 0x00);
    const { call } = startHooks({ settingsOf });
    expect(whole(call(METHOD, request))).toEqual(Uint8Array.of(0x0a, 0x82, 0x00, 0x08, 0x01, 0x12, 0x00));
  });

  it('keeps a cluster with two names unchanged', () => {
    const cluster = concat([named(CLUSTER), bytesField(1, Buffer.from('xds_cluster'))]);
    expect(answered(translation({ clusters: [cluster] })).clusters).toEqual([cluster]);
  });

  it('edits other clusters if one cannot be edited', () => {
    const failing = (name: string) => {
      if (name === 'httproute/shop/bad/rule/0') throw new Error('the cache is broken');
      return settingsOf(name);
    };
    const bad = named('httproute/shop/bad/rule/0');
    const answer = answered(translation({ clusters: [bad, named(CLUSTER)] }), failing);
    expect(answer.clusters[0]).toEqual(bad);
    expect(answer.recorded).toMatchObject({ failures: ['translation'], clusters: ['translation'] });
  });

  it('is deterministic and idempotent', () => {
    const request = translation({ clusters: [named(CLUSTER), named('a')] });
    const once = answered(request).clusters;
    expect(answered(request).clusters).toEqual(once);
    expect(answered(translation({ clusters: once })).clusters).toEqual(once);
  });

  it('returns all of 8,192 clusters', () => {
    const names = Array.from(
      { length: 8192 },
      (_, at) => `httproute/${at % 8 === 0 ? 'shop' : 'other'}/r${at}/rule/0`,
    );
    const answer = answered(translation({ clusters: names.map(named) }));
    expect(answer.clusters.map(cluster => read(cluster).name)).toEqual(names);
    expect(answer.recorded.clusters).toHaveLength(1024);
  });
});
