import { describe, expect, it } from 'vitest';
import { access, anchorsController, PAUSE_MS } from '../../../src/controllers/anchors/controller.ts';
import { routesTo, sharedIndexes } from '../../../src/store/indexes.ts';
import { trafficIndexes } from '../../../src/store/traffic/resources.ts';
import { trafficValues } from '../../../src/store/traffic/values.ts';
import { gatewayObject, meshBackend, named, openGateway, route } from '../../support/declared.ts';
import { meshEndpoints, meshGateway, meshTailnet } from '../../support/objects.ts';
import { Runtime } from '../../support/runtime/runtime.ts';

const OWN = 'mesh-system';
const gateway = openGateway('default/public');
const tailnet = named(meshTailnet(), 'one');
const web = named(meshEndpoints(), 'default/web');
const to = (backend: object) => ({ rules: [{ backendRefs: [meshBackend({ ...backend })] }] });
const tcp = (name = 'default/tcp', backend = {}) => route('TCPRoute', name, to(backend));
const grant = (kind: string) =>
  gatewayObject('ReferenceGrant', 'other/grant', {
    from: [{ group: 'gateway.networking.k8s.io', kind, namespace: 'default' }],
    to: [{ group: 'mesh-gateway.dev', kind: 'MeshEndpoints' }],
  });

const TRAFFIC = { dataPath: 'Proxy', clusterEncoding: '', settingsFrom: 'MeshGateway' } as const;

/** The controller on resources in memory. */
async function controllerOn(objects: readonly object[]) {
  const runtime = new Runtime(objects, [...trafficIndexes, ...sharedIndexes]);
  const { memory, clock, tracking } = runtime;
  const { read, write, author } = memory;
  const values = trafficValues(tracking, TRAFFIC);
  const ownNamespace = { namespace: OWN };
  runtime.start(anchorsController({ values, ownNamespace, write }));
  await memory.start();
  await clock.settle();
  const routesInOwn = () => read.list('HTTPRoute').filter(({ metadata }) => metadata.namespace === OWN);
  const anchors = () => routesInOwn().filter(({ metadata }) => metadata.name.startsWith('mesh-anchor-'));
  const put = async (...changed: readonly object[]) => {
    for (const object of changed) await author.put(object);
    await clock.advance(PAUSE_MS);
  };
  const remove = async (
    kind: 'TCPRoute' | 'MeshEndpoints' | 'MeshGateway' | 'Gateway' | 'HTTPRoute',
    name: string,
    namespace = 'default',
  ) => {
    await author.remove({ kind, namespace, name });
    await clock.advance(PAUSE_MS);
  };
  const anchored = () =>
    anchors()
      .flatMap(({ rules }) => rules.flatMap(({ backendRefs }) => backendRefs))
      .map(({ namespace, name }) => `${namespace}/${name}`);
  return { routesInOwn, anchors, anchored, put, remove, read, values };
}

describe('anchors', () => {
  it.each(['TLSRoute', 'TCPRoute', 'UDPRoute'] as const)('name the MeshEndpoints of a %s', async kind => {
    const { anchors } = await controllerOn([gateway, tailnet, web, route(kind, 'default/l4')]);
    expect(anchors()).toMatchObject([
      {
        metadata: { name: 'mesh-anchor-0', labels: { 'app.kubernetes.io/managed-by': 'mesh-gateway' } },
        parentRefs: [{ namespace: 'default', name: 'public', sectionName: 'mesh-gateway.dev' }],
        rules: [{ backendRefs: [{ kind: 'MeshEndpoints', namespace: 'default', name: 'web', weight: 0 }] }],
      },
    ]);
  });

  it.each(['HTTPRoute', 'GRPCRoute'] as const)('are not needed for a %s', async kind => {
    const { anchors } = await controllerOn([gateway, tailnet, web, route(kind, 'default/l7')]);
    expect(anchors()).toEqual([]);
  });

  it('are no routes of a MeshEndpoints or a Gateway, and have no traffic', async () => {
    const { anchors, read, values } = await controllerOn([gateway, tailnet, web, tcp()]);
    expect(anchors()).toHaveLength(1);
    expect(routesTo('MeshEndpoints/default/web', read).map(({ kind }) => kind)).toEqual(['TCPRoute']);
    const attached = values.attachedRoutes.keys.read('Gateway/default/public');
    expect(attached).toEqual(['TCPRoute/default/tcp']);
    const cluster = values.clusters.read('httproute/mesh-system/mesh-anchor-0/rule/0');
    expect(cluster).toBeUndefined();
  });

  it('name only what exists', async () => {
    const late = tcp('default/other', { name: 'late' });
    const { anchored, put, remove } = await controllerOn([gateway, tailnet, web, tcp(), late]);
    expect(anchored()).toEqual(['default/web']);
    await put(named(meshEndpoints(), 'default/late'));
    expect(anchored()).toEqual(['default/web', 'default/late']);
    await remove('MeshEndpoints', 'late');
    expect(anchored()).toEqual(['default/web']);
  });

  it('name what is in another namespace where a ReferenceGrant lets the route refer to it', async () => {
    const far = [named(meshEndpoints(), 'other/web'), tcp('default/tcp', { namespace: 'other' })];
    const { anchored, put } = await controllerOn([gateway, ...far]);
    expect(anchored()).toEqual([]);
    await put(grant('UDPRoute'));
    expect(anchored()).toEqual([]);
    await put(grant('TCPRoute'));
    expect(anchored()).toEqual(['other/web']);
  });

  it('name nothing of a namespace that may not use the tailnet', async () => {
    const closed = { allowedNamespaces: { from: 'Selector', selector: { matchLabels: { a: 'b' } } } };
    const { anchored, put } = await controllerOn([gateway, named(meshTailnet(closed), 'one'), web, tcp()]);
    expect(anchored()).toEqual([]);
    await put(tailnet);
    expect(anchored()).toEqual(['default/web']);
  });

  it('are not needed for a Gateway whose MeshGateway turns them off, if it is the oldest', async () => {
    const off = named(meshGateway({ routeStatus: { anchors: false } }), 'default/b');
    const { anchored, put, remove } = await controllerOn([gateway, tailnet, web, tcp(), off]);
    expect(anchored()).toEqual([]);
    await put(named(meshGateway(), 'default/c'));
    expect(anchored()).toEqual([]);
    await remove('MeshGateway', 'b');
    expect(anchored()).toEqual(['default/web']);
  });

  it('are deleted with the last route, and with the last Gateway', async () => {
    const { anchors, put, remove } = await controllerOn([gateway, tailnet, web, tcp()]);
    await remove('TCPRoute', 'tcp');
    expect(anchors()).toEqual([]);
    await put(tcp());
    expect(anchors()).toHaveLength(1);
    await remove('Gateway', 'public');
    expect(anchors()).toEqual([]);
  });

  it('are written again when others delete or change them, and no other HTTPRoute is touched', async () => {
    const users = route('HTTPRoute', `${OWN}/mine`);
    const { anchors, routesInOwn, put, remove } = await controllerOn([gateway, tailnet, web, tcp(), users]);
    const before = anchors();
    await remove('HTTPRoute', 'mesh-anchor-0', OWN);
    expect(anchors().map(({ rules }) => rules)).toEqual(before.map(({ rules }) => rules));
    await put(route('HTTPRoute', `${OWN}/mesh-anchor-0`, to({ namespace: 'default', weight: 5 })));
    expect(anchors().map(({ rules }) => rules)).toEqual(before.map(({ rules }) => rules));
    expect(routesInOwn().map(({ metadata }) => metadata.name)).toContain('mine');
  });

  it('are written once a second at most, however many routes are new', async () => {
    const { anchors, put } = await controllerOn([gateway, tailnet, web, tcp()]);
    const more = Array.from({ length: 40 }, (_, index) => `new-${index}`);
    await put(
      ...more.flatMap(name => [named(meshEndpoints(), `default/${name}`), tcp(`default/${name}`, { name })]),
    );
    expect(anchors()).toHaveLength(3);
    expect(anchors().map(({ metadata }) => metadata.generation)).toEqual([2, 1, 1]);
  });

  it('are in the operator’s namespace, the only one in which it may write HTTPRoutes', () => {
    expect(access.cluster).toEqual([]);
    expect(access.own.flatMap(({ resources }) => resources)).toEqual(['httproutes']);
  });
});
