import { createHash } from 'node:crypto';
import { recordOf } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import { addressText } from '../../api/socket-address.ts';
import { parseEnvoyClusterName } from '../../traffic/envoy-cluster-name.ts';
import { at, listAt, numberAt, textAt } from '../doctor/observed.ts';

/** An endpoint of a cluster in an Envoy. */
export type EnvoyHost = {
  /** Such as 100.64.0.1:8080. */
  readonly address: string;
  /** What EDS sent: HEALTHY also for UNKNOWN, which Envoy does not distinguish. */
  readonly health: string;
  /** Why Envoy itself does not use it, by the names of its admin interface: failed_active_health_check. */
  readonly failing: readonly string[];
  readonly priority: number;
  /** The proxy through which it connects. */
  readonly proxy?: string;
  /** Its weight among the endpoints of its backend, and that of the backend. */
  readonly weight?: number;
  readonly backendWeight?: number;
};

/** The cluster of a rule in an Envoy. */
export type EnvoyCluster = {
  readonly name: string;
  /** Of its settings, as Envoy has acknowledged them. */
  readonly version: string;
  /** Whether an update waits for its endpoints. */
  readonly isWarming: boolean;
  readonly hosts: readonly EnvoyHost[];
  /** How many updates of its endpoints Envoy has rejected since it started. */
  readonly rejected: number;
};

/** What an Envoy has by its admin interface. */
export type EnvoyState = {
  /** Those of rules, by their names. */
  readonly clusters: ReadonlyMap<string, EnvoyCluster>;
  /** A hash of the versions of all clusters. */
  readonly version: string;
  /** How many updates, of everything, Envoy has rejected since it started. */
  readonly rejected: number;
  /** What it still rejects, each with Envoy's reason. */
  readonly errors: readonly string[];
};

/** Responses of an Envoy's admin interface. */
type Responses = Readonly<Record<'dump' | 'clusters' | 'stats', unknown>>;

/** Reads the responses to /config_dump?include_eds, /clusters?format=json and /stats?format=json. */
export function stateOf({ dump, clusters, stats }: Responses): EnvoyState {
  const parts = listAt(dump, 'configs');
  const rejections = new Map(
    listAt(stats, 'stats').map(each => [textAt(each, 'name'), numberAt(each, 'value')] as const),
  );
  const assigned = assignedIn(parts);
  const hosts = new Map(
    listAt(clusters, 'cluster_statuses').map(each => {
      const name = textAt(each, 'name');
      return [name, listAt(each, 'host_statuses').map(host => hostOf(host, assigned.get(name)))] as const;
    }),
  );
  const clusterOf = (name: string, version: string, isWarming: boolean): EnvoyCluster => ({
    name,
    version,
    isWarming,
    hosts: hosts.get(name) ?? [],
    rejected: rejections.get(`cluster.${name}.update_rejected`) ?? 0,
  });
  const found = new Map<string, EnvoyCluster>();
  const entries = (list: string) => parts.flatMap(part => listAt(part, list));
  for (const entry of entries('dynamic_active_clusters')) {
    const name = textAt(entry, 'cluster', 'name');
    if (parseEnvoyClusterName(name)) found.set(name, clusterOf(name, textAt(entry, 'version_info'), false));
  }
  for (const entry of entries('dynamic_warming_clusters')) {
    const name = textAt(entry, 'cluster', 'name');
    const version = found.get(name)?.version ?? '';
    if (parseEnvoyClusterName(name)) found.set(name, clusterOf(name, version, true));
  }
  return {
    clusters: found,
    version: versionOf([...found.values()]),
    rejected: [...rejections.values()].reduce((sum, count) => sum + count, 0),
    errors: [...errorsIn(parts)],
  };
}

function hostOf(host: Fields, assigned: Assigned | undefined): EnvoyHost {
  const { eds_health_status: health, ...flags } = recordOf(host['health_status']);
  const address = placeAt(host, 'address');
  return {
    address,
    health: typeof health === 'string' ? health : 'HEALTHY',
    failing: Object.keys(flags).filter(name => flags[name] === true),
    priority: numberAt(host, 'priority'),
    ...assigned?.get(address),
  };
}

/** An Address of Envoy as text. */
function placeAt(value: unknown, ...path: readonly string[]): string {
  const socket = at(value, ...path, 'socket_address');
  return addressText({ meshIP: textAt(socket, 'address'), port: numberAt(socket, 'port_value') });
}

const PROXY = 'envoy.http11_proxy_transport_socket.proxy_address';

/** What Envoy has of endpoints by EDS, by their addresses. */
type Assigned = ReadonlyMap<string, Pick<EnvoyHost, 'proxy' | 'weight' | 'backendWeight'>>;

/** By the names of clusters. A locality is one backend; Envoy 1.40 shows no weight of one where it has none. */
function assignedIn(parts: readonly Fields[]): ReadonlyMap<string, Assigned> {
  const assignments = parts
    .flatMap(part => listAt(part, 'dynamic_endpoint_configs'))
    .map(entry => at(entry, 'endpoint_config'));
  return new Map(
    assignments.map(assignment => {
      const endpoints = listAt(assignment, 'endpoints').flatMap(locality => {
        const backendWeight = weightIn(locality);
        return listAt(locality, 'lb_endpoints').map(each => {
          const proxy =
            at(each, 'metadata', 'typed_filter_metadata', PROXY) === undefined
              ? undefined
              : placeAt(each, 'metadata', 'typed_filter_metadata', PROXY);
          const weight = weightIn(each);
          const known = {
            ...(proxy !== undefined && { proxy }),
            ...(weight !== undefined && { weight }),
            ...(backendWeight !== undefined && { backendWeight }),
          };
          return [placeAt(each, 'endpoint', 'address'), known] as const;
        });
      });
      return [textAt(assignment, 'cluster_name'), new Map(endpoints)];
    }),
  );
}

function weightIn(part: Fields): number | undefined {
  const weight = part['load_balancing_weight'];
  return typeof weight === 'number' ? weight : undefined;
}

function versionOf(clusters: readonly EnvoyCluster[]): string {
  const texts = clusters.map(({ name, version }) => `${name} ${version}`).sort();
  return createHash('sha256').update(texts.join('\n')).digest('hex').slice(0, 8);
}

const MAX_DETAILS = 300;

/** What Envoy has rejected, and has had no valid update of since; a rejected update holds more than users may see. */
function* errorsIn(parts: readonly Fields[]): Generator<string> {
  for (const entry of parts.flatMap(part => Object.values(part)).flat()) {
    const details = textAt(entry, 'error_state', 'details');
    if (details === '') continue;
    const name =
      textAt(entry, 'name') || textAt(entry, 'cluster', 'name') || textAt(entry, 'route_config', 'name');
    yield `${name === '' ? 'an update' : name}: ${details.slice(0, MAX_DETAILS)}`;
  }
}
