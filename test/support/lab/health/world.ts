import { readClusters, requestThrough } from '../../../../lab/gateway/envoy.ts';
import type { GatewayResponse } from '../../../../lab/gateway/envoy.ts';
import type { RemoteNode } from '../../../../lab/state.ts';
import type { Condition, EndpointStatus, Kinds } from '../../../../src/api/generated/types.ts';
import type { ReadResources } from '../../../../src/store/resources.ts';
import { remoteOf } from '../lab.ts';
import { clusterOf, meshEndpoints, meshRoute, meshTailnet } from '../traffic/objects.ts';
import type { StandaloneProcess } from '../traffic/standalone-process.ts';
import { startSystemWith } from '../traffic/system.ts';
import type { System, SystemOptions } from '../traffic/system.ts';
import { CHECK } from './faults.ts';
import { standaloneHere } from './standalone-here.ts';
import type { StandaloneHere } from './standalone-here.ts';

/** The fields of an endpoint or of a health check. */
type Fields = Readonly<Record<string, unknown>>;

/** The checked endpoints of a system, and where the health of each shows. */
export interface CheckedSystem {
  /** The device behind which the services of a test are. */
  readonly web: RemoteNode;
  /** A service of the test as an endpoint of the device. */
  endpoint(name: string, port: number, fields: Fields, healthCheck?: Fields): Fields;
  /** Puts an object with one checked endpoint of its name, and an HTTPRoute to it for the host NAME.test. */
  putChecked(name: string, port: number, healthCheck?: Fields): void;
  /** The gauge of an endpoint in the object of the same name. */
  gauge(name: string): Promise<number | undefined>;
  /** Whether Envoy uses a service of the test in a cluster, by its port; undefined if it has no such endpoint. */
  usable(cluster: string, port: number): Promise<boolean | undefined>;
  /** A response of a route. */
  responseOf(name: string): Promise<GatewayResponse>;
}

/** Puts the MeshTailnet of a system. */
export function checkedSystem(
  system: Omit<System, 'standalone'> & { readonly standalone: Pick<StandaloneProcess, 'metrics'> },
): CheckedSystem {
  const { lab, gateway, standalone, listeners } = system;
  system.put('tailnet', [meshTailnet(lab, [lab.proxy])]);
  const web = remoteOf(lab, 'web-1');
  const endpoint: CheckedSystem['endpoint'] = (name, port, fields, healthCheck) => ({
    name,
    meshIP: web.address,
    meshFQDN: web.fqdn,
    port,
    ...fields,
    ...(healthCheck && { healthCheck: { ...CHECK, ...healthCheck } }),
  });
  return {
    web,
    endpoint,
    putChecked: (name, port, healthCheck = {}) => {
      const route = { name, kind: 'HTTPRoute', listener: 'http', refs: [{ name, port }] } as const;
      system.put(name, [
        meshEndpoints(lab, name, [endpoint(name, port, { protocol: 'HTTP' }, healthCheck)]),
        meshRoute(gateway, { ...route, hostnames: [`${name}.test`] }),
      ]);
    },
    gauge: async name => {
      const labels = `namespace="default",name="${name}",endpoint="${name}"`;
      return (await standalone.metrics()).get(`mesh_gateway_endpoint_healthy{${labels}}`);
    },
    usable: async (cluster, port) => {
      const found = (await readClusters(gateway.admin)).find(each => each.name === cluster);
      const host = found?.endpoints.find(({ address }) => address.endsWith(`:${port}`));
      return host && host.health !== 'UNHEALTHY' && !host.failing.includes('failed_active_health_check');
    },
    responseOf: name => requestThrough(listeners['http'] ?? '', { host: `${name}.test` }),
  };
}

/** A status that an endpoint had, with the error. */
type Seen = { readonly endpoint: string; readonly status: string; readonly error: string | undefined };

/** A system with standalone in this process, so that a test sees the status of objects. */
export interface HealthWorld extends System<StandaloneHere>, CheckedSystem {
  /** The entry of an endpoint in the status of the object of the same name. */
  entry(name: string): EndpointStatus | undefined;
  condition(object: string, type: string): Condition | undefined;
  /** Each status that an endpoint has had, in order. */
  readonly seen: readonly Seen[];
}

/** Starts it with a Gateway that has no routes yet. */
export async function startHealthWorld(options: SystemOptions = {}): Promise<HealthWorld> {
  const system = await startSystemWith(standaloneHere, options);
  const read = system.standalone.read();
  const statusOf = (name: string) => read.get({ kind: 'MeshEndpoints', namespace: 'default', name })?.status;
  return {
    ...system,
    ...checkedSystem(system),
    entry: name => statusOf(name)?.endpoints?.find(each => each.name === name),
    condition: (name, type) => statusOf(name)?.conditions?.find(each => each.type === type),
    seen: statusesIn(read),
  };
}

/** The name of the cluster of an HTTPRoute. */
export function httpCluster(name: string): string {
  return clusterOf({ kind: 'HTTPRoute', name });
}

/** Collects each status that an endpoint has, from now on. */
function statusesIn(read: ReadResources): readonly Seen[] {
  const [seen, last] = [[] as Seen[], new Map<string, string>()];
  const record = ({ metadata, status }: Kinds['MeshEndpoints']) => {
    for (const { name, status: now = '', error } of status?.endpoints ?? []) {
      const endpoint = `${metadata.name}/${name}`;
      if (last.get(endpoint) === now) continue;
      last.set(endpoint, now);
      seen.push({ endpoint, status: now, error });
    }
  };
  read.subscribe(() => read.list('MeshEndpoints').forEach(record));
  return seen;
}
