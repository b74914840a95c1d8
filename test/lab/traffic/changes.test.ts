import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requestThrough } from '../../../lab/gateway/envoy.ts';
import { withLogTail } from '../../../lab/process/process.ts';
import { until } from '../../../lab/process/wait.ts';
import { GROUP } from '../../../src/api/generated/kinds.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import { bytesClient } from '../../support/lab/traffic/clients/bytes.ts';
import {
  endpointsIn,
  hostOf,
  placesOf,
  writeHealth,
  routeWithEndpointHeader,
  untilEndpoints,
} from '../../support/lab/traffic/changing-world.ts';
import type { PlaceOptions } from '../../support/lab/traffic/changing-world.ts';
import { startComposed } from '../../support/lab/traffic/composed.ts';
import type { Composed } from '../../support/lab/traffic/composed.ts';
import { readsAfterNow, statOf, activeCluster } from '../../support/lab/traffic/gateway-reads.ts';
import type { Reads } from '../../support/lab/traffic/gateway-reads.ts';
import { answersOf, startLoad } from '../../support/lab/traffic/load.ts';
import type { Load } from '../../support/lab/traffic/load.ts';
import { backendRef } from '../../support/lab/traffic/lossless/mixed.ts';
import { longAnswer } from '../../support/lab/traffic/long-answer.ts';
import { clusterOf, meshRoute, meshTailnet } from '../../support/lab/traffic/objects.ts';
import { startWatched } from '../../support/lab/traffic/watched.ts';
import type { HookCall, Watched } from '../../support/lab/traffic/watched.ts';
import { generatedIn } from '../../support/standalone/generated.ts';

const PER_SECOND = 200;

const ROUTES = ['pair', 'checked', 'split'];

let system: Composed<Watched>;
let load: Load;
beforeAll(async () => {
  system = await startComposed(startWatched);
  const { one, two } = nodes();
  const { lab, gateway } = system;
  system.put('tailnet', [meshTailnet(lab, [lab.proxy])]);
  putPlaces('pair', 'http', [{ name: 'a', on: one }]);
  putPlaces('checked', 'http', CHECKED());
  putPlaces('raw', 'tcp', [{ name: 'a', on: one }]);
  system.put('canary', [placesOf(lab, 'canary', 'http', two, [{ name: 'a', on: two }])]);
  const port = portOf('http');
  const split = [
    { name: 'checked', port, weight: 90 },
    { name: 'canary', port: two.ports['http'] ?? 0, weight: 10 },
  ];
  putBackend('marker', 9);
  system.put('routes', [
    ...['pair', 'checked'].map(name => routeWithEndpointHeader(gateway, { name, refs: [{ name, port }] })),
    routeWithEndpointHeader(gateway, { name: 'split', refs: split }),
    meshRoute(gateway, { ...RAW, listener: 'tcp', refs: [{ name: 'raw', port: portOf('tcp') }] }),
  ]);
  await withLogTail(gateway, Promise.all([...ROUTES.map(untilAnswered), untilEchoed()]));
  load = startLoad({
    listener: gateway.listeners.http,
    targets: ROUTES.map(targetOf),
    perSecond: PER_SECOND,
  });
});
afterAll(async () => {
  try {
    await load.stop();
  } finally {
    await system.end();
  }
});

const RAW = { kind: 'TCPRoute', name: 'raw' } as const;

function nodes() {
  return { one: remoteOf(system.lab, 'web-1'), two: remoteOf(system.lab, 'web-2') };
}

/** Every endpoint has the port of a service of web-1, even on web-2. */
function portOf(service: 'http' | 'tcp'): number {
  return nodes().one.ports[service] ?? 0;
}

/** The address of a node. */
function at(node: 'one' | 'two', service: 'http' | 'tcp' = 'http'): string {
  return `${nodes()[node].address}:${portOf(service)}`;
}

function putPlaces(object: string, service: 'http' | 'tcp', places: readonly PlaceOptions[]): void {
  system.put(object, [placesOf(system.lab, object, service, nodes().one, places)]);
}

const CHECK = { enabled: true, type: 'HTTP', path: '/status/200', interval: '5s', timeout: '5s' };
const CHECKED = (): readonly PlaceOptions[] => [
  { name: 'a', on: nodes().one, healthCheck: CHECK },
  { name: 'b', on: nodes().two, healthCheck: CHECK },
];

const targetOf = (route: string) => ({ host: hostOf(route) });
const cluster = (name: string) => clusterOf({ kind: 'HTTPRoute', name });
const endpoints = (route: string, wanted: readonly string[]) =>
  untilEndpoints(
    system.gateway,
    cluster(route),
    ({ address, health }) => `${address} ${health}`,
    wanted.map(one => (one.includes(' ') ? one : `${one} HEALTHY`)),
  );

/** The endpoints that answer a number of requests, with the count of each. */
const chosen = (route: string, count = 100) =>
  answersOf(system.gateway.listeners.http, targetOf(route), count, ({ endpoint }) => endpoint);

async function untilAnswered(route: string): Promise<void> {
  const request = async () => (await chosen(route, 1)).size;
  await until(`an answer of ${route}`, request);
}

async function echoed(): Promise<boolean> {
  const client = bytesClient({ listener: system.gateway.listeners.tcp, host: '' });
  const answer = await client.echo(Buffer.from('hello'));
  return answer.toString() === 'hello';
}

function untilEchoed(): Promise<true> {
  return until('an echo', echoed);
}

/** The number of translations among the calls. */
const translationsIn = (calls: readonly HookCall[]) =>
  calls.filter(({ hook }) => hook === 'PostTranslateModify').length;

const translations = () => translationsIn(system.extension.calls());

/** Waits until Envoy Gateway has handled all earlier changes. */
async function untilAtRest(): Promise<void> {
  const isLast = () => Promise.resolve(bindingNow()?.spec.attempt === 1);
  await until('the last attempt', isLast);
  const isAtRest = async (note: (seen: string) => void) => {
    const caused = await causedBy(doNothing);
    note(JSON.stringify(caused));
    return isDeepStrictEqual(caused, NOTHING);
  };
  await until('Envoy Gateway to be at rest', isAtRest);
}

const doNothing = () => Promise.resolve();

function bindingNow() {
  const { namespace, name } = system.gateway;
  return system.operator.read.get({ kind: 'MeshBinding', namespace, name });
}

let markers = 0;

/** A Backend of Envoy Gateway on this machine. */
function putBackend(name: string, port: number): void {
  const spec = { endpoints: [{ ip: { address: '127.0.0.1', port } }] };
  const metadata = { name, namespace: 'default' };
  system.put(`${name}-backend`, [
    { apiVersion: 'gateway.envoyproxy.io/v1alpha1', kind: 'Backend', metadata, spec },
  ]);
}

function putHttpRoute(name: string, rule: object): void {
  const parentRefs = [{ name: system.gateway.name, sectionName: 'http' }];
  const spec = { parentRefs, hostnames: [hostOf(name)], rules: [rule] };
  const metadata = { name, namespace: 'default' };
  system.put(`${name}-route`, [
    { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute', metadata, spec },
  ]);
}

/** Changes a route of others, and waits until Envoy Gateway has read and translated it. */
async function untilMarked(reads: Reads): Promise<void> {
  const marker = `marker-${markers++}`;
  // The cluster of a route carries the name of its rule.
  putHttpRoute('marker', { name: marker, backendRefs: [backendRef('marker')] });
  const isTranslated = () => {
    const isOver = system.extension
      .calls()
      .some(({ hook, request }) => hook === 'PostTranslateModify' && Buffer.from(request).includes(marker));
    return Promise.resolve(isOver);
  };
  const translated = until(`${marker} to be translated`, isTranslated);
  await withLogTail(system.gateway, Promise.all([translated, reads.until(1)]));
}

/**
 * What an idle Envoy Gateway does because of an action: how many changes of files it handles, and how many
 * translations it makes, without those of two markers at the end. It may translate the first marker together with
 * earlier changes, and handle its change later; everything before is done when it has handled the second.
 */
async function causedBy(work: () => Promise<void>): Promise<typeof NOTHING> {
  const [reads, before] = [readsAfterNow(system.gateway), translations()];
  await work();
  await untilMarked(reads);
  await untilMarked(readsAfterNow(system.gateway));
  return { changes: reads.handled() - 2, translations: translations() - before - 2 };
}

const NOTHING = { changes: 0, translations: 0 };

/** More lines than arrive before a removed endpoint has drained. */
const LINES = 100;

describe('Envoy follows', () => {
  it('an endpoint that is added', async () => {
    putPlaces('pair', 'http', [
      { name: 'a', on: nodes().one },
      { name: 'b', on: nodes().two },
    ]);
    await endpoints('pair', [at('one'), at('two')]);
    expect([...(await chosen('pair')).keys()].sort()).toEqual([at('one'), at('two')].sort());
  });

  it('the weights of endpoints', async () => {
    putPlaces('pair', 'http', [
      { name: 'a', on: nodes().one, weight: 9 },
      { name: 'b', on: nodes().two, weight: 1 },
    ]);
    const weights = [`${at('one')} 9`, `${at('two')} 1`];
    const textOf = ({ address, weight }: { address: string; weight: number }) => `${address} ${weight}`;
    await untilEndpoints(system.gateway, cluster('pair'), textOf, weights);
    const counts = await chosen('pair', 1_000);
    // Envoy prefers the endpoint with fewer requests, so weights are not exact.
    expect(counts.get(at('one'))).toBeGreaterThan(2 * (counts.get(at('two')) ?? 0));
    expect(counts.get(at('two'))).toBeGreaterThan(20);
  });

  it('an endpoint that is removed, and drains its requests', async () => {
    putPlaces('pair', 'http', [
      { name: 'a', on: nodes().one },
      { name: 'b', on: nodes().two },
    ]);
    const even = ({ address, weight }: { address: string; weight: number }) => `${address} ${weight}`;
    await untilEndpoints(system.gateway, cluster('pair'), even, [`${at('one')} 1`, `${at('two')} 1`]);
    const request = () => longAnswer(system.gateway.listeners.http, hostOf('pair'), LINES);
    const responses = await Promise.all(Array.from({ length: 10 }, request));
    putPlaces('pair', 'http', [{ name: 'a', on: nodes().one }]);
    await endpoints('pair', [at('one'), `${at('two')} DRAINING`]);
    expect([...(await chosen('pair')).keys()]).toEqual([at('one')]);
    await endpoints('pair', [at('one')]);
    const whole = await Promise.all(responses.map(({ whole: text }) => text));
    expect(responses.map(({ endpoint }) => endpoint)).toContain(at('two'));
    expect(new Set(whole.map(text => text.trimEnd().split('\n').length))).toEqual(new Set([LINES]));
  });

  it('an endpoint that moves to another address', async () => {
    putPlaces('pair', 'http', [{ name: 'a', on: nodes().two }]);
    await endpoints('pair', [`${at('one')} DRAINING`, at('two')]);
    expect([...(await chosen('pair')).keys()]).toEqual([at('two')]);
  });

  it('the weights of two objects, to 2 percent of 5,000 requests', async () => {
    const counts = await answersOf(
      system.gateway.listeners.http,
      targetOf('split'),
      5_000,
      ({ backend }) => backend,
    );
    expect([...counts.keys()].sort()).toEqual(['web-1', 'web-2']);
    expect(Math.abs((counts.get('web-2') ?? 0) - 500)).toBeLessThanOrEqual(100);
  });
});

describe('no translation is caused', () => {
  beforeAll(untilAtRest);

  it('by health that flips, which Envoy follows', async () => {
    const written = () => generatedIn(system.generated).get('MeshEndpoints/default/checked');
    const before = written();
    const caused = await causedBy(async () => {
      await writeHealth(system, 'checked', { a: 'Healthy', b: 'Unhealthy' });
      await endpoints('checked', [at('one'), `${at('two')} UNHEALTHY`]);
      expect([...(await chosen('checked')).keys()]).toEqual([at('one')]);
      await writeHealth(system, 'checked', { a: 'Unhealthy', b: 'Healthy' });
      await endpoints('checked', [`${at('one')} UNHEALTHY`, at('two')]);
      expect([...(await chosen('checked')).keys()]).toEqual([at('two')]);
      await writeHealth(system, 'checked', { a: 'Healthy', b: 'Healthy' });
      await endpoints('checked', [at('one'), at('two')]);
      expect([...(await chosen('checked')).keys()].sort()).toEqual([at('one'), at('two')].sort());
    });
    expect(before).toContain('meshIP');
    expect(written()).toBe(before);
    expect(caused).toEqual(NOTHING);
  });

  it('by an object that only a TCPRoute uses, which Envoy follows', async () => {
    const binding = bindingNow();
    const caused = await causedBy(async () => {
      putPlaces('raw', 'tcp', [{ name: 'a', on: nodes().two }]);
      const wanted = [at('two', 'tcp')];
      await untilEndpoints(system.gateway, clusterOf(RAW), ({ address }) => address, wanted);
      expect(await echoed()).toBe(true);
      const [endpoint] = await endpointsIn(system.gateway.admin, clusterOf(RAW));
      expect(endpoint?.stats['cx_total']).toBeGreaterThan(0);
    });
    expect(bindingNow()).toBe(binding);
    expect(caused).toEqual(NOTHING);
  });
});

describe('an object that an HTTPRoute uses', () => {
  it('reaches Envoy while Envoy Gateway still waits for its translation, which replaces no cluster', async () => {
    await endpoints('pair', [at('two')]);
    await untilAnotherRouteWorks('sooner');
    const held = await bytesClient({ listener: system.gateway.listeners.tcp, host: '' }).open();
    await held.turn(Buffer.from('before'));
    const [active, modified] = [
      await activeCluster(system.gateway, cluster('pair')),
      await modifiedClusters(),
    ];
    const connections = await connectionsTo(at('two'));
    expect(connections).toBeGreaterThan(0);
    const before = system.extension.calls().length;
    const release = system.extension.hold();
    try {
      putPlaces('pair', 'http', [
        { name: 'a', on: nodes().two },
        { name: 'added', on: nodes().one },
      ]);
      await endpoints('pair', [at('one'), at('two')]);
      const isCalled = () => Promise.resolve(system.extension.calls().length > before);
      await until('Envoy Gateway to ask', isCalled);
      expect([...(await chosen('pair')).keys()].sort()).toEqual([at('one'), at('two')].sort());
    } finally {
      release();
    }
    await untilAnotherRouteWorks('later');
    expect(await activeCluster(system.gateway, cluster('pair'))).toEqual(active);
    expect(await modifiedClusters()).toBe(modified);
    expect(await connectionsTo(at('two'))).toBeGreaterThanOrEqual(connections);
    expect((await held.turn(Buffer.from('behind'))).toString()).toBe('behind');
    held.reset();
  });
});

const modifiedClusters = () => statOf(system.gateway, 'cluster_manager.cluster_modified');

/** The number of connections of Envoy to an endpoint; a replaced cluster counts from zero. */
async function connectionsTo(address: string): Promise<number> {
  const found = await endpointsIn(system.gateway.admin, cluster('pair'));
  return found.find(endpoint => endpoint.address === address)?.stats['cx_total'] ?? 0;
}

/** Envoy gets updates in order: when it has a later route, it has everything that was translated before. */
async function untilAnotherRouteWorks(name: string): Promise<void> {
  const refs = [{ name: 'checked', port: portOf('http') }];
  system.put(name, [routeWithEndpointHeader(system.gateway, { name, refs })]);
  await untilAnswered(name);
}

describe('all the while', () => {
  it('no request fails', () => {
    expect(load.failures()).toEqual([]);
    expect(load.answered()).toBeGreaterThan(PER_SECOND);
  });
});

describe('a rule that mixes MeshEndpoints with a Backend of Envoy Gateway', () => {
  it('sends to both by their weights, and fails no request when they are reordered, or one edit gives MeshEndpoints all', async () => {
    const server = createServer((_, response) => response.end('of others'));
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    putPlaces('mixed', 'http', [{ name: 'a', on: nodes().one }]);
    putBackend('other', port);
    const mesh = { group: GROUP, kind: 'MeshEndpoints', name: 'mixed', port: portOf('http'), weight: 3 };
    putHttpRoute('mixed', { backendRefs: [mesh, backendRef('other', 1)] });
    const request = () => requestThrough(system.gateway.listeners.http, { host: hostOf('mixed') });
    const isShared = async (note: (seen: string) => void) => {
      const answers = await Promise.all(Array.from({ length: 200 }, request));
      const ofOthers = answers.filter(({ body }) => body === 'of others').length;
      note(`${ofOthers} of 200`);
      return ofOthers > 30 && ofOthers < 70;
    };
    try {
      await withLogTail(system.gateway, until('both to get their shares', isShared));
      const found = await endpointsIn(system.gateway.admin, cluster('mixed'));
      expect(found.map(({ address }) => address).sort()).toEqual([at('one'), `127.0.0.1:${port}`].sort());
      const before = system.extension.calls().length;
      putHttpRoute('mixed', { name: 'moved', backendRefs: [backendRef('other', 1), mesh] });
      const statuses = new Set<number>();
      const isMoved = async () => {
        for (const { status } of await Promise.all(Array.from({ length: 20 }, request))) statuses.add(status);
        const since = system.extension.calls().slice(before);
        return since.some(({ request }) => Buffer.from(request).includes('moved'));
      };
      await until('the rule with its references in another order to be translated', isMoved);
      expect([await isMoved(), ...statuses]).toEqual([true, 200]);
      const answeredAlone = (by: string) => async (note: (seen: string) => void) => {
        const answers = await Promise.all(Array.from({ length: 20 }, request));
        for (const { status } of answers) statuses.add(status);
        const others = answers.filter(({ body }) => (body === 'of others' ? 'Backend' : 'mesh') !== by);
        note(`${others.length} of 20 by others`);
        return others.length === 0;
      };
      putHttpRoute('mixed', { backendRefs: [backendRef('other', 1), { ...mesh, weight: 0 }] });
      await until('the Backend to answer alone', answeredAlone('Backend'));
      await untilMarked(readsAfterNow(system.gateway));
      putHttpRoute('mixed', { name: 'last', backendRefs: [backendRef('other', 0), mesh] });
      await until('MeshEndpoints to answer alone', answeredAlone('mesh'));
      await untilMarked(readsAfterNow(system.gateway));
      expect([await answeredAlone('mesh')(() => undefined), ...statuses]).toEqual([true, 200]);
    } finally {
      const closed = new Promise(resolve => server.close(resolve));
      // Envoy keeps connections open, also some that never had a request.
      server.closeAllConnections();
      await closed;
    }
  });
});

describe('a request whose connection is refused', () => {
  const statusOf = async (route: string) =>
    (await requestThrough(system.gateway.listeners.http, { host: hostOf(route) })).status;
  const retriesOf = (route: string) => statOf(system.gateway, `cluster.${cluster(route)}.upstream_rq_retry`);

  it('is sent again twice to MeshEndpoints with a proxy, and not to other backends', async () => {
    system.put('tailnet', [meshTailnet(system.lab, ['127.0.0.1:9'])]);
    putPlaces('refused', 'http', [{ name: 'a', on: nodes().two }]);
    const refs = [{ name: 'refused', port: portOf('http') }];
    system.put('refused-route', [routeWithEndpointHeader(system.gateway, { name: 'refused', refs })]);
    putHttpRoute('plain', { backendRefs: [backendRef('marker')] });
    await withLogTail(system.gateway, endpoints('refused', [at('two')]));
    const retries: number[] = [];
    for (const route of ['refused', 'plain']) {
      await until(`${route} to be refused`, async note => {
        const status = await statusOf(route);
        note(`status ${status}`);
        return status === 503;
      });
      const before = await retriesOf(route);
      expect(await statusOf(route)).toBe(503);
      retries.push((await retriesOf(route)) - before);
    }
    expect(retries).toEqual([2, 0]);
  });
});
