import { request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { requestJson } from '../process/request-json.ts';

/** An endpoint of a cluster in Envoy. */
export type EnvoyEndpoint = {
  readonly address: string;
  readonly hostname: string;
  /** Its health by EDS. */
  readonly health: string;
  /** The names of Envoy's own health checks that fail. */
  readonly failing: readonly string[];
  readonly priority: number;
  readonly weight: number;
  /** Counters and gauges by their names. */
  readonly stats: Readonly<Record<string, number>>;
};

/** A cluster of an Envoy. */
export type EnvoyCluster = { readonly name: string; readonly endpoints: readonly EnvoyEndpoint[] };

type HostStatus = {
  readonly address?: { readonly socket_address?: { readonly address: string; readonly port_value: number } };
  readonly hostname?: string;
  readonly health_status?: Readonly<Record<string, string | boolean>>;
  readonly priority?: number;
  readonly weight?: number;
  readonly stats?: readonly { readonly name: string; readonly value?: string | number }[];
};

/** The clusters of an Envoy, from its admin endpoint. */
export async function readClusters(admin: string): Promise<readonly EnvoyCluster[]> {
  const { cluster_statuses: clusters = [] } = (await requestJson('GET', `${admin}/clusters?format=json`)) as {
    cluster_statuses?: readonly { readonly name: string; readonly host_statuses?: readonly HostStatus[] }[];
  };
  return clusters.map(({ name, host_statuses: hosts = [] }) => ({ name, endpoints: hosts.map(endpointOf) }));
}

function endpointOf({
  address,
  hostname,
  health_status,
  priority,
  weight,
  stats,
}: HostStatus): EnvoyEndpoint {
  const { eds_health_status: health, ...checks } = health_status ?? {};
  const where = address?.socket_address;
  return {
    address: where ? `${where.address}:${where.port_value}` : '',
    hostname: hostname ?? '',
    health: String(health),
    failing: Object.keys(checks).filter(name => checks[name] === true),
    priority: priority ?? 0,
    weight: weight ?? 0,
    stats: Object.fromEntries((stats ?? []).map(({ name, value }) => [name, Number(value ?? 0)])),
  };
}

/** One part of an Envoy's configuration: its type and its fields. */
export type ConfigPart = { readonly '@type': string; readonly [field: string]: unknown };

/** All of an Envoy's configuration, endpoints included. */
export async function readConfigDump(admin: string): Promise<readonly ConfigPart[]> {
  const { configs } = (await requestJson('GET', `${admin}/config_dump?include_eds`)) as {
    configs: readonly ConfigPart[];
  };
  return configs;
}

/** A request to a host behind a gateway. */
export type GatewayRequest = {
  readonly host: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
};

/** A response through a gateway. */
export type GatewayResponse = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

const TIMEOUT_MS = 60_000;

/** Sends a request to a listener at host:port, over a connection of its own. */
export async function requestThrough(listener: string, options: GatewayRequest): Promise<GatewayResponse> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(`http://${listener}${options.path ?? '/'}`, {
      method: options.method ?? 'GET',
      headers: { ...options.headers, host: options.host },
      agent: false,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    sent.once('error', reject).once('response', resolve).end(options.body);
  });
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: Buffer.concat(chunks).toString(),
  };
}
