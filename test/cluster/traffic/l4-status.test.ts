import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gatewayAddress } from '../../../lab/cluster/gateway.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { waitForAbsence, waitForObject } from '../../../lab/kube/wait.ts';
import { until } from '../../../lab/process/wait.ts';
import type { ServiceName } from '../../../lab/tailnet/backends.ts';
import type { RouteKind } from '../../../src/api/key.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { exchangeAtOnce } from '../../support/cluster/install/datagrams.ts';
import { startManagedTailnet } from '../../support/cluster/install/mesh.ts';
import type { ManagedTailnet } from '../../support/cluster/install/mesh.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { gatewayObject, meshBackend, named, route } from '../../support/declared.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import { refToRoute, waitForResolvedRefs } from '../../support/cluster/resolved-refs.ts';
import { bytesClient } from '../../support/lab/traffic/clients/bytes.ts';
import { endpoint, meshEndpoints, meshGateway } from '../../support/objects.ts';
import { readFileSync } from 'node:fs';

const cluster = testCluster();
const remote = remoteOf(cluster, 'web-1');
const OWN = PLACE.system;
const API = 'gateway.networking.k8s.io/v1';

let tailnet: ManagedTailnet;
let scene: InstallScene;
let namespace: string;
let other: string;
let host: string;
beforeAll(async () => {
  tailnet = await startManagedTailnet(cluster);
  scene = await installScene({ tailnet });
  namespace = scene.namespace;
  other = await createNamespace(scene.client);
  await applyAll(scene.client, [tailnet.secret, tailnet.tailnetNamed(namespace), gateway()]);
  host = await gatewayAddress(scene.client, { namespace, name: 'public' });
});
afterAll(async () => {
  await removeNamespace(scene.client, other);
  await scene.end();
});

const PORTS = { http: 80, tcp: 5000, tls: 5001, udp: 5002, missing: 5003, far: 5004, alpha: 5005 } as const;

function gateway(): KubeObject {
  const listeners = [
    { name: 'http', port: PORTS.http, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'All' } } },
    { name: 'tcp', port: PORTS.tcp, protocol: 'TCP' },
    { name: 'missing', port: PORTS.missing, protocol: 'TCP' },
    { name: 'far', port: PORTS.far, protocol: 'TCP' },
    { name: 'alpha', port: PORTS.alpha, protocol: 'TCP' },
    { name: 'tls', port: PORTS.tls, protocol: 'TLS', tls: { mode: 'Passthrough' } },
    { name: 'udp', port: PORTS.udp, protocol: 'UDP' },
  ];
  return gatewayObject('Gateway', `${namespace}/public`, {
    ...{ gatewayClassName: 'mesh', listeners },
  }) as KubeObject;
}

/** MeshEndpoints with a service of the remote node, named as the service. */
function service(name: ServiceName, protocol: string, within = namespace): KubeObject {
  const { address: meshIP, fqdn: meshFQDN, ports } = remote;
  const fields = { meshIP, meshFQDN, port: ports[name], protocol };
  return named(meshEndpoints({ endpoints: [endpoint(fields)] }), `${within}/${name}`) as KubeObject;
}

function routeTo(
  kind: RouteKind,
  listener: keyof typeof PORTS,
  backend: Record<string, unknown>,
  version = 'v1',
): KubeObject {
  const rules = [{ backendRefs: [meshBackend(backend)] }];
  const parentRefs = [{ name: 'public', sectionName: listener }];
  const hostnames = kind === 'TLSRoute' ? { hostnames: [remote.fqdn] } : {};
  return route(kind, `${namespace}/${listener}`, { parentRefs, rules, ...hostnames }, version) as KubeObject;
}

const refOfRoute = (kind: RouteKind, name: string) => refToRoute(kind, namespace, name);

const expectResolvedRefs = (kind: RouteKind, name: string, expected: string) =>
  waitForResolvedRefs(scene.client, refOfRoute(kind, name), expected);

const anchor = { apiVersion: API, kind: 'HTTPRoute', namespace: OWN, name: 'mesh-anchor-0' };

/** Exchanges some bytes with the service behind a listener. */
async function exchange(listener: (typeof L4)[number]['name']): Promise<void> {
  const sent = Buffer.from('through the tailnet');
  await until(`an answer through ${listener}`, async note => {
    if (listener === 'udp') {
      const { strays } = await exchangeAtOnce({ host, port: PORTS.udp }, 1);
      return strays.length === 0;
    }
    const ca = listener === 'tls' ? readFileSync(remote.caFile) : undefined;
    const client = bytesClient({ listener: `${host}:${PORTS[listener]}`, host: remote.fqdn }, ca);
    try {
      return (await client.echo(sent)).equals(sent);
    } catch (error) {
      note(String(error));
      return undefined;
    } finally {
      client.close();
    }
  });
}

/** The routes, each named as its listener. */
const L4 = [
  { kind: 'TCPRoute', version: 'v1', name: 'tcp', to: 'tcp', protocol: 'TCP' },
  { kind: 'TCPRoute', version: 'v1alpha2', name: 'alpha', to: 'tcp', protocol: 'TCP' },
  { kind: 'TLSRoute', version: 'v1', name: 'tls', to: 'tls', protocol: 'TLS' },
  { kind: 'UDPRoute', version: 'v1', name: 'udp', to: 'udp', protocol: 'UDP' },
] as const;

describe.each(L4)('a $kind of $version', ({ kind, version, name, to, protocol }) => {
  it('has traffic and ResolvedRefs True', async () => {
    printLogsOnFailure(scene.client, namespace, OWN);
    const ofVersion = routeTo(kind, name, { name: to, port: remote.ports[to] }, version);
    await applyAll(scene.client, [service(to, protocol), ofVersion]);
    await expectResolvedRefs(kind, name, 'True ResolvedRefs');
    await exchange(name);
  });
});

type Listeners = {
  readonly listeners?: readonly { readonly name: string; readonly attachedRoutes: number }[];
};

describe('anchors', () => {
  it('are attached to no listener, even one for routes of all namespaces', async () => {
    await waitForObject(scene.client, anchor, 'to be refused by Envoy Gateway', ({ status }) =>
      JSON.stringify(status).includes('NoMatchingParent'),
    );
    const attachedTo = ({ status }: KubeObject, listener: string) =>
      (status as Listeners).listeners?.find(({ name }) => name === listener)?.attachedRoutes;
    const ref = { apiVersion: API, kind: 'Gateway', namespace, name: 'public' };
    // Envoy Gateway writes the status of a Gateway apart from that of its routes.
    const found = await waitForObject(scene.client, ref, 'to have all routes', object =>
      L4.every(({ name }) => attachedTo(object, name) === 1),
    );
    expect(attachedTo(found, 'http')).toBe(0);
  });

  it('resolve nothing that does not exist', async () => {
    await scene.client.apply(routeTo('TCPRoute', 'missing', { name: 'missing', port: 80 }));
    await expectResolvedRefs('TCPRoute', 'missing', 'False BackendNotFound');
    await scene.client.apply(named(meshEndpoints(), `${namespace}/missing`) as KubeObject);
    await expectResolvedRefs('TCPRoute', 'missing', 'True ResolvedRefs');
    await scene.client.remove({
      ...{ apiVersion: 'mesh-gateway.dev/v1alpha1', kind: 'MeshEndpoints', namespace, name: 'missing' },
    });
    await expectResolvedRefs('TCPRoute', 'missing', 'False BackendNotFound');
  });

  it('resolve what is in another namespace if its ReferenceGrant permits the route and the anchors', async () => {
    const from = { group: 'gateway.networking.k8s.io', kind: 'TCPRoute', namespace };
    const anchors = { ...from, kind: 'HTTPRoute', namespace: OWN };
    const to = [{ group: 'mesh-gateway.dev', kind: 'MeshEndpoints' }];
    const grant = (...entries: readonly object[]) =>
      gatewayObject('ReferenceGrant', `${other}/mesh`, { from: entries, to }, 'v1beta1') as KubeObject;
    const far = routeTo('TCPRoute', 'far', { name: 'tcp', namespace: other, port: remote.ports['tcp'] });
    await applyAll(scene.client, [service('tcp', 'TCP', other), grant(anchors), far]);
    await expectResolvedRefs('TCPRoute', 'far', 'False RefNotPermitted');
    await scene.client.apply(grant(from, anchors));
    await expectResolvedRefs('TCPRoute', 'far', 'True ResolvedRefs');
    await scene.client.apply(grant(from));
    await expectResolvedRefs('TCPRoute', 'far', 'False RefNotPermitted');
  });

  it('are deleted where a MeshGateway turns them off, and with the last route', async () => {
    const off = meshGateway({ routeStatus: { anchors: false } });
    const meshGatewayRef = {
      ...{ apiVersion: 'mesh-gateway.dev/v1alpha1', kind: 'MeshGateway', namespace, name: 'off' },
    };
    await scene.client.apply(named(off, `${namespace}/off`) as KubeObject);
    await waitForAbsence(scene.client, anchor);
    await expectResolvedRefs('TCPRoute', 'tcp', 'False BackendNotFound');
    await exchange('tcp');
    await scene.client.remove(meshGatewayRef);
    await expectResolvedRefs('TCPRoute', 'tcp', 'True ResolvedRefs');
    const all = [...L4.map(({ kind, name }) => refOfRoute(kind, name))];
    for (const ref of [...all, refOfRoute('TCPRoute', 'missing'), refOfRoute('TCPRoute', 'far')]) {
      await scene.client.remove(ref);
    }
    await waitForAbsence(scene.client, anchor);
  });
});
