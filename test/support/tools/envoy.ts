import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** An endpoint in Envoy: where, through which proxy, and flags of its health. */
export type Host = {
  readonly address: string;
  readonly port?: number;
  readonly priority?: number;
  readonly proxy?: string;
  readonly health?: Readonly<Record<string, string | boolean>>;
  readonly weight?: number;
  readonly backendWeight?: number;
};

/** What an Envoy has: hosts by the names of clusters, and what else a test is about. */
export type EnvoyParts = {
  readonly clusters: Readonly<Record<string, readonly Host[]>>;
  readonly version?: string;
  readonly warming?: readonly string[];
  /** Counters of rejected updates. */
  readonly rejected?: Readonly<Record<string, number>>;
  /** Of a listener that is rejected. */
  readonly error?: string;
  /** The id of the node in the bootstrap. */
  readonly node?: string;
};

const PROXY = 'envoy.http11_proxy_transport_socket.proxy_address';

function socket(address: string, port: number) {
  return { socket_address: { address, port_value: port } };
}

/** Responses of Envoy's admin interface, shaped as those of Envoy 1.40. */
export function envoyResponses(parts: EnvoyParts) {
  const { clusters, version = '7', warming = [], rejected = {}, error, node = 'envoy' } = parts;
  const entryOf = (name: string) => ({ version_info: version, cluster: { name } });
  const all = Object.entries(clusters);
  const config = {
    dynamic_active_clusters: all.map(([name]) => entryOf(name)),
    ...(warming.length > 0 && { dynamic_warming_clusters: warming.map(entryOf) }),
  };
  const listener = { name: 'default/public/http', error_state: { details: error } };
  return {
    dump: {
      configs: [
        { bootstrap: { node: { id: node } } },
        config,
        { dynamic_endpoint_configs: all.map(assignmentOf) },
        ...(error === undefined ? [] : [{ dynamic_listeners: [listener] }]),
      ],
    },
    clusters: {
      cluster_statuses: all.map(([name, hosts]) => ({ name, host_statuses: hosts.map(hostStatusOf) })),
    },
    stats: { stats: Object.entries(rejected).map(([name, value]) => ({ name, value })) },
  };
}

function assignmentOf([name, hosts]: readonly [string, readonly Host[]]) {
  const localities = hosts.map(({ address, port = 8080, proxy, weight = 1, backendWeight = 1 }) => {
    const metadata = {
      typed_filter_metadata: proxy === undefined ? {} : { [PROXY]: socket(...hostAndPort(proxy)) },
    };
    const endpoint = {
      endpoint: { address: socket(address, port) },
      metadata,
      load_balancing_weight: weight,
    };
    return { lb_endpoints: [endpoint], load_balancing_weight: backendWeight };
  });
  return { endpoint_config: { cluster_name: name, endpoints: localities } };
}

function hostStatusOf({ address, port = 8080, priority, health }: Host) {
  return {
    address: socket(address, port),
    health_status: { eds_health_status: 'HEALTHY', ...health },
    ...(priority !== undefined && { priority }),
  };
}

function hostAndPort(text: string): readonly [string, number] {
  const [host = '', port] = text.split(':');
  return [host, Number(port)];
}

/** Serves the admin interface of an Envoy on loopback; returns its port. */
export async function serveEnvoyAdmin(parts: EnvoyParts): Promise<number> {
  const { dump, clusters, stats } = envoyResponses(parts);
  const answers: Readonly<Record<string, object>> = { '/config_dump': dump, '/clusters': clusters };
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://localhost');
    response.end(JSON.stringify(answers[pathname] ?? stats));
  });
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}
