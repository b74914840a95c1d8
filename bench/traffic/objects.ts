import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { GATEWAY_GROUP } from '../../src/api/objects/gateway-api.ts';
import { API_VERSION, GROUP } from '../../src/api/generated/kinds.ts';
import { formatEnvoyClusterName } from '../../src/traffic/envoy-cluster-name.ts';

const NAMESPACE = 'mesh';
const ENDPOINTS = 10;
const TAILNET = 'example.ts.net';
const GATEWAY = { namespace: 'default', name: 'gateway' };

/** One in this number of services is gRPC. */
const GRPC_EVERY = 10;

/** A folder of services with a route each, and files for the client. */
export type World = {
  readonly folder: string;
  readonly services: number;
  /** A file with the cluster and the object of each service, which the client and the peer read. */
  readonly resources: string;
  /** The Gateway that all routes attach to, as namespace/name. */
  readonly gateway: string;
};

/** Changed content for the file of a service, with one more endpoint. */
export type Addition = {
  /** The path of the new content, and the file that it replaces. */
  readonly from: string;
  readonly to: string;
  readonly cluster: string;
  readonly address: string;
};

/** Writes objects for a number of services below a folder, perhaps with a MeshRoutePolicy for each route. */
export function writeWorld(root: string, services: number, policies: 'none' | 'each' = 'none'): World {
  const folder = join(root, 'folder');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'common.yaml'), documents([gateway, meshTailnet]));
  const indexes = Array.from({ length: services }, (_, index) => index);
  for (const index of indexes) {
    writeFileSync(fileOf(folder, index), documents([meshEndpoints(index, ENDPOINTS)]));
    const more = policies === 'each' ? [meshRoutePolicy(index)] : [];
    writeFileSync(join(folder, `route-${index}.yaml`), documents([route(index), ...more]));
  }
  const list = indexes.map(index => ({ cluster: clusterOf(index), object: meshEndpoints(index, ENDPOINTS) }));
  const resources = join(root, 'resources.json');
  writeFileSync(resources, JSON.stringify(list));
  return { folder, services, resources, gateway: `${GATEWAY.namespace}/${GATEWAY.name}` };
}

/** Prepares one more endpoint for each of the first services, to be moved into place later. */
export function writeAdditions(root: string, { folder }: World, count: number): readonly Addition[] {
  const staged = join(root, 'staged');
  mkdirSync(staged);
  return Array.from({ length: count }, (_, index) => {
    const from = fileOf(staged, index);
    writeFileSync(from, documents([meshEndpoints(index, ENDPOINTS + 1)]));
    return {
      from,
      to: fileOf(folder, index),
      cluster: clusterOf(index),
      address: addressOf(index, ENDPOINTS),
    };
  });
}

function documents(objects: readonly object[]): string {
  return objects.map(object => stringify(object)).join('---\n');
}

function fileOf(folder: string, index: number): string {
  return join(folder, `service-${index}.yaml`);
}

function isGrpc(index: number): boolean {
  return index % GRPC_EVERY === GRPC_EVERY - 1;
}

function routeKindOf(index: number) {
  return isGrpc(index) ? 'GRPCRoute' : 'HTTPRoute';
}

function clusterOf(index: number): string {
  return formatEnvoyClusterName(routeKindOf(index), NAMESPACE, nameOf(index), 0);
}

function nameOf(index: number): string {
  return `service-${index}`;
}

function addressOf(index: number, at: number): string {
  return `100.${64 + Math.floor(index / 250)}.${index % 250}.${at + 1}`;
}

const gateway = {
  apiVersion: `${GATEWAY_GROUP}/v1`,
  kind: 'Gateway',
  metadata: GATEWAY,
  spec: {
    gatewayClassName: 'envoy',
    listeners: [{ name: 'http', protocol: 'HTTP', port: 80, allowedRoutes: { namespaces: { from: 'All' } } }],
  },
};

const meshTailnet = {
  apiVersion: API_VERSION,
  kind: 'MeshTailnet',
  metadata: { name: 'main' },
  spec: { tailnet: TAILNET, pool: { mode: 'External', addresses: ['10.0.0.9:1055'] } },
};

function meshEndpoints(index: number, count: number): object {
  return {
    apiVersion: API_VERSION,
    kind: 'MeshEndpoints',
    metadata: {
      name: nameOf(index),
      namespace: NAMESPACE,
      labels: { 'app.kubernetes.io/name': nameOf(index) },
    },
    spec: {
      tailnet: TAILNET,
      endpoints: Array.from({ length: count }, (_, at) => ({
        name: `e${at + 1}`,
        meshIP: addressOf(index, at),
        meshFQDN: `device-${index}-${at + 1}.${TAILNET}`,
        port: 8080,
        protocol: isGrpc(index) ? 'gRPC' : 'HTTP',
        metadata: { region: at % 2 === 0 ? 'eu-west' : 'us-east' },
      })),
    },
  };
}

function route(index: number): object {
  return {
    apiVersion: `${GATEWAY_GROUP}/v1`,
    kind: routeKindOf(index),
    metadata: { name: nameOf(index), namespace: NAMESPACE },
    spec: {
      parentRefs: [GATEWAY],
      hostnames: [`${nameOf(index)}.example.com`],
      rules: [{ backendRefs: [{ group: GROUP, kind: 'MeshEndpoints', name: nameOf(index), port: 8080 }] }],
    },
  };
}

/** Prefers half of the endpoints of a route. */
function meshRoutePolicy(index: number): object {
  return {
    apiVersion: API_VERSION,
    kind: 'MeshRoutePolicy',
    metadata: { name: nameOf(index), namespace: NAMESPACE },
    spec: {
      targetRefs: [{ group: GATEWAY_GROUP, kind: routeKindOf(index), name: nameOf(index) }],
      endpoints: { prefer: [{ matchLabels: { region: 'eu-west' } }] },
      failover: { healthyPercent: 80 },
    },
  };
}
