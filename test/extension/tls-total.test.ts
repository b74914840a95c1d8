import { fromBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { keyOf } from '../../src/api/key.ts';
import { createResolutionCache } from '../../src/extension/resolution-cache.ts';
import { PostTranslateModifyResponseSchema } from '../../src/extension/proto/envoygateway/extension_pb.ts';
import { trafficIndexes } from '../../src/store/traffic/resources.ts';
import { overTlsTotal } from '../../src/traffic/settings/tls-budget.ts';
import { gatewayCluster, read } from '../support/extension/clusters.ts';
import { startHooks, translation, whole } from '../support/extension/hooks.ts';
import { endpoint } from '../support/objects.ts';
import { createMemory } from '../support/store/memory.ts';
import { derivedFrom } from '../support/store/traffic.ts';
import { CERTIFICATE } from '../support/traffic/certificates.ts';
import {
  backend,
  configMapObject,
  endpointsObject,
  httpRoute,
  tailnetObject,
} from '../support/traffic/objects.ts';

/** Nearly all that a cluster may have. */
const LARGE = CERTIFICATE.repeat(Math.floor((255 * 1024) / CERTIFICATE.length));
const ROUTES = 3;
const RULES = 16;

const to = backend('web', { port: 443 });
const names = (namespace: string, routes = ROUTES, rules = RULES) =>
  Array.from(
    { length: routes * rules },
    (_, at) => `httproute/${namespace}/r${Math.floor(at / rules)}/rule/${at % rules}`,
  );

/** An endpoint that trusts these certificates. */
const endpointsIn = (namespace: string, certificates: string) => [
  configMapObject(`${namespace}/ca`, { 'ca.crt': certificates }),
  endpointsObject(`${namespace}/web`, [
    endpoint({ port: 443, protocol: 'HTTPS', tls: { caRef: { name: 'ca' } } }),
  ]),
];

/** A namespace at its share of 12 MB. */
function fullNamespace(namespace: string): readonly object[] {
  const rules = Array.from({ length: RULES }, () => [to]);
  const routes = Array.from({ length: ROUTES }, (_, at) => httpRoute(`${namespace}/r${at}`, ...rules));
  return [...endpointsIn(namespace, LARGE), ...routes];
}

const victim = [...endpointsIn('victim', CERTIFICATE), httpRoute('victim/r0', [to])];
const [victimCluster = ''] = names('victim', 1, 1);

/** The hook and the status over the same values, as in one process. */
async function installation(attackers: readonly string[]) {
  const memory = createMemory(trafficIndexes, [
    tailnetObject(),
    ...victim,
    ...attackers.flatMap(fullNamespace),
  ]);
  await memory.start();
  const { traffic } = derivedFrom(memory.read);
  const cache = createResolutionCache(memory.read, traffic, 'Proxy');
  const settingsOf = (cluster: string) => cache.settingsOf(cluster, []);
  const clusters = [...attackers.flatMap(name => names(name)), victimCluster];
  const request = translation({ clusters: clusters.map(name => gatewayCluster([], { name })) });
  const { call, recorded } = startHooks({ settingsOf });
  return {
    memory,
    settingsOf,
    translate: () => {
      const answer = whole(call('PostTranslateModify', request));
      const answered = fromBinary(PostTranslateModifyResponseSchema, answer).clusters.map(read);
      const byName = new Map(answered.map(cluster => [cluster.name, cluster]));
      return { bytes: answer.length, clusterOf: (name: string) => byName.get(name) };
    },
    clusters,
    failures: recorded.failures,
    unusedOf: (namespace: string, name: string) =>
      traffic.unused.read(keyOf({ kind: 'HTTPRoute', namespace, name })),
  };
}

const ATTACKERS = Array.from({ length: 9 }, (_, at) => `attacker-${at}`);

describe('nine namespaces at their share of TLS settings', () => {
  it('leave no cluster unedited, and those of a namespace with one small bundle as they are alone', async () => {
    const alone = (await installation([])).translate().clusterOf(victimCluster);
    expect(alone?.transportSocketMatches).toHaveLength(1);
    const { translate, failures, clusters, unusedOf } = await installation(ATTACKERS);
    const { bytes, clusterOf } = translate();
    expect(failures).toEqual([]);
    expect(clusterOf(victimCluster)).toEqual(alone);
    expect(clusters.filter(name => clusterOf(name)?.edsClusterConfig?.serviceName !== name)).toEqual([]);
    expect(bytes).toBeLessThan(81_000_000);
    expect(unusedOf('victim', 'r0')).toEqual([]);
    const openOf = (namespace: string) =>
      names(namespace).filter(name => clusterOf(name)?.transportSocketMatches.length === 1).length;
    // 306 rules have room in 80 MB.
    expect(ATTACKERS.map(openOf)).toEqual(ATTACKERS.map(() => 34));
    const [first] = unusedOf('attacker-8', 'r2');
    expect(first).toMatchObject({ reason: 'TooManyTlsSettings', object: 'MeshEndpoints/attacker-8/web' });
    expect(first?.text).toContain(
      'the TLS settings of the routes in all namespaces, certificates included, exceed 80 MB, and those of namespace attacker-8 its equal part of that, and those of this rule are left out',
    );
  });

  it('have room for more of their rules once others have fewer', async () => {
    const { memory, settingsOf, unusedOf } = await installation(ATTACKERS);
    const isOpen = (name: string) => settingsOf(name)?.socketMatches.length === 1;
    expect(names('attacker-0').filter(isOpen)).toHaveLength(34);
    for (const namespace of ATTACKERS.slice(6))
      await memory.author.remove({ kind: 'MeshEndpoints', namespace, name: 'web' });
    // What the share of the namespace has room for.
    expect(names('attacker-0').filter(isOpen)).toHaveLength(45);
    expect(unusedOf('attacker-0', 'r2')[0]?.text).toContain('exceed 12 MB, the share of a namespace');
  });
});

describe('the turns of namespaces', () => {
  const needs = (namespace: string, count: number, bytes: number) =>
    [
      namespace,
      Array.from({ length: count }, (_, at) => ({ cluster: `${namespace}/${at}`, bytes })),
    ] as const;
  const overIn = (over: ReadonlySet<string>, namespace: string) =>
    [...over].filter(cluster => cluster.startsWith(`${namespace}/`)).length;

  it('are by bytes, so that many small rules have an equal part beside few large ones', () => {
    const large = ATTACKERS.map(name => needs(name, 46, 256_000));
    const over = overTlsTotal(new Map([...large, needs('small', 2000, 4000)]));
    expect(overIn(over, 'small')).toBe(0);
    const more = overTlsTotal(new Map([...large, needs('small', 2900, 4000)]));
    expect(2900 - overIn(more, 'small')).toBeGreaterThanOrEqual(2000);
  });

  it('do not depend on the order in which namespaces are read', () => {
    const all = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map(name => needs(name, 47, 251_000));
    const over = overTlsTotal(new Map(all));
    expect(over.size).toBeGreaterThan(0);
    expect(overTlsTotal(new Map([...all].reverse()))).toEqual(over);
  });

  it('come for the first rule of every namespace before the second of any', () => {
    const many = Array.from({ length: 300 }, (_, at) => needs(`n${at}`, 2, 256_000));
    const over = overTlsTotal(new Map(many));
    expect(many.map(([name]) => over.has(`${name}/0`))).not.toContain(true);
    expect(over.size).toBe(300 - 12);
  });
});
