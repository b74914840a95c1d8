import { readFileSync } from 'node:fs';
import { readServices, setService } from '../../../../../lab/tailnet/backends.ts';
import { readClusters } from '../../../../../lab/gateway/envoy.ts';
import type { KubernetesObject } from '../../../../../lab/gateway/objects.ts';
import { locateBinaries } from '../../../../../lab/parts/locate.ts';
import { withLogTail } from '../../../../../lab/process/process.ts';
import { startRemote } from '../../../../../lab/tailnet/remote.ts';
import { starterIn } from '../../../../../lab/process/starter.ts';
import type { RemoteNode } from '../../../../../lab/state.ts';
import { changeNode, listNodes } from '../../../../../lab/tailnet/tailnet.ts';
import { remoteOf } from '../../lab.ts';
import { nameOf } from './cells.ts';
import type { Row } from './cells.ts';
import type { Client } from '../clients/client.ts';
import { clientOf } from '../clients/clients.ts';
import { untilItWorks } from './matrix.ts';
import type { MatrixSystem } from './matrix.ts';
import { clusterOf, meshEndpointsOf, meshRoute } from '../objects.ts';
import type { MeshRouteOptions } from '../objects.ts';
import type { Subject } from './subject.ts';
import type { System } from '../system.ts';
import { PROTOCOL_ROUTES } from './protocol-routes.ts';
import type { Carried } from './witness.ts';

/** The listeners that rows need in addition to one for each kind of route. */
export const TCP_LISTENERS = ['originated', 'distrusted'] as const;

/** What the system of the rows needs. */
export type MatrixSystemDeps = {
  readonly system: System;
  readonly rows: readonly Row[];
  /** The bytes that the tailnet has carried to a service so far. */
  readonly carriedTo: (remote: RemoteNode, port: number) => Carried;
  readonly isShared: boolean;
};

/** A system, with the node of each row, by the name of the row. */
type Place = System & { readonly nodes: ReadonlyMap<string, RemoteNode> };

/** Writes a route for each row at once, and returns the system in which the rows are proved. */
export async function matrixSystem(deps: MatrixSystemDeps): Promise<MatrixSystem> {
  const { rows, carriedTo, isShared } = deps;
  const system = { ...deps.system, nodes: await startNodes(deps) };
  system.put('rows', [...endpointsOf(system), ...rows.flatMap(row => routesOf(system, row))]);
  return {
    isShared,
    change: async to => {
      const { admin } = system.lab.tailnet;
      const names = [...system.nodes.values()].map(({ hostname }) => hostname);
      const nodes = (await listNodes(admin)).filter(({ hostname }) => names.includes(hostname));
      await Promise.all(nodes.map(({ id }) => changeNode(admin, id, to)));
    },
    subjectOf: async row => {
      const remote = remoteFor(system, row);
      const { service } = PROTOCOL_ROUTES[row.protocol];
      const port = remote.ports[service] ?? 0;
      const client = clientFor(system, row, routeFor(system, row, 'trusted'));
      await withLogTail(system.standalone, withLogTail(system.gateway, untilItWorks({ client })));
      const held = await client.open();
      await held.turn(Buffer.from('opened'));
      return {
        client,
        held,
        service: {
          state: async () => (await readServices(remote.control))[service],
          set: mode => setService(remote.control, service, mode),
        },
        carried: () => Promise.resolve(carriedTo(remote, port)),
        addresses: () => addressesOf(system, clusterOf(routeFor(system, row, 'trusted'))),
        meshAddress: `${remote.address}:${port}`,
        repeats: row.client === 'datagrams',
        countsConnections: row.client === 'bytes' || row.client === 'TLS',
        ...(row.properties.includes('wrong CA') ? { distrusted: distrustedOf(system, row) } : {}),
      };
    },
  };
}

/**
 * A node for each row, so that the counts of a service belong to one row. A daemon that forwards to several ports of
 * its machine refuses a connection now and then, when two have the same source port.
 */
async function startNodes({ system, rows }: MatrixSystemDeps): Promise<Place['nodes']> {
  const starter = starterIn(system.folder, locateBinaries(process.env), process.env['PATH'] ?? '');
  const start = async (row: Row, index: number) =>
    [nameOf(row), await startRemote(starter, system.lab.tailnet, `row-${index}`)] as const;
  return new Map(await Promise.all(rows.map(start)));
}

function endpointsOf({ lab, nodes }: Place): readonly KubernetesObject[] {
  return [...nodes.values()].flatMap(node => [
    meshEndpointsOf(lab, node.hostname, node),
    meshEndpointsOf(lab, `distrusted-${node.hostname}`, node, remoteOf(lab, 'web-1')),
  ]);
}

type Trust = 'trusted' | 'distrusted';

function routesOf(system: Place, row: Row): readonly KubernetesObject[] {
  const trusts: readonly Trust[] = row.properties.includes('wrong CA')
    ? ['trusted', 'distrusted']
    : ['trusted'];
  return trusts.map(trust => meshRoute(system.gateway, routeFor(system, row, trust)));
}

function remoteFor({ nodes }: Place, row: Row): RemoteNode {
  const node = nodes.get(nameOf(row));
  if (!node) throw new Error(`${nameOf(row)} has no node`);
  return node;
}

type RouteOptions = MeshRouteOptions & { readonly host: string };

function routeFor(system: Place, row: Row, trust: Trust): RouteOptions {
  const remote = remoteFor(system, row);
  const { kind, listener, service } = PROTOCOL_ROUTES[row.protocol];
  const isTrusted = trust === 'trusted';
  const name = `${isTrusted ? '' : 'distrusted-'}${nameOf(row)}`.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  const host = kind === 'TLSRoute' ? remote.fqdn : `${name}.test`;
  const hasHost = kind !== 'TCPRoute' && kind !== 'UDPRoute';
  return {
    name,
    kind,
    host,
    listener: isTrusted || hasHost ? listener : 'distrusted',
    ...(hasHost ? { hostnames: [host] } : {}),
    refs: [{ name: `${isTrusted ? '' : 'distrusted-'}${remote.hostname}`, port: remote.ports[service] ?? 0 }],
  };
}

function clientFor(system: Place, row: Row, { listener, host }: RouteOptions): Client {
  const authority = readFileSync(remoteFor(system, row).caFile);
  return clientOf(row.client, { listener: system.listeners[listener] ?? '', host }, authority);
}

function distrustedOf(system: Place, row: Row): NonNullable<Subject['distrusted']> {
  const route = routeFor(system, row, 'distrusted');
  return { client: clientFor(system, row, route), refusals: () => refusalsOf(system, clusterOf(route)) };
}

async function addressesOf({ gateway }: System, cluster: string): Promise<readonly string[]> {
  const clusters = await readClusters(gateway.admin);
  return clusters
    .filter(({ name }) => name === cluster)
    .flatMap(({ endpoints }) => endpoints.map(one => one.address));
}

/** How many certificates Envoy has refused, with whichever of its sockets for a cluster. */
export async function refusalsOf({ gateway }: Pick<System, 'gateway'>, cluster: string): Promise<number> {
  const text = await (await fetch(`${gateway.admin}/stats?filter=ssl.fail_verify`)).text();
  const counts = text.split('\n').filter(line => line.startsWith(`cluster.${cluster}.`));
  return counts.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
