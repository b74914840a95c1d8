import { familyOf } from '../api/ip.ts';
import { ENVOY_POD, MESH_POD, NAMESPACE, RELAY } from '../api/names.ts';
import { parseSocketAddress } from '../api/socket-address.ts';
import {
  parseCount,
  parseDuration,
  parseSize,
  parseChoice,
  parseOptional,
  parsePort,
  parseRequired,
  parseTarget,
} from './settings.ts';
import { LABEL_KEY, MAX_LABEL_KEYS, repeatedLabelOf } from '../telemetry/endpoint-metrics.ts';
import { parseAddress } from '../telemetry/address.ts';
import type { Address } from '../telemetry/address.ts';
import { parseLogLevel } from '../telemetry/log.ts';
import { SettingError } from '../telemetry/setting-error.ts';
import type { Settings } from './settings.ts';

/** Settings of logs, metrics and probes, which every process has. */
export const telemetrySettings = {
  logLevel: {
    name: 'LOG_LEVEL',
    help: 'log level: debug, info, warn or error',
    default: 'info',
    parse: (_setting, text) => parseLogLevel(text),
  },
  metricsAddress: {
    name: 'METRICS_ADDRESS',
    help: 'address to serve metrics and pprof on',
    default: ':8080',
    parse: parseAddress,
  },
  healthAddress: {
    name: 'HEALTH_ADDRESS',
    help: 'address to serve /healthz and /readyz on; Envoy Gateway on the same machine takes 8081',
    default: ':8081',
    parse: parseAddress,
  },
  pprof: { name: 'PPROF', help: 'serve pprof: on or off', default: 'on', parse: parseChoice(['on', 'off']) },
} as const satisfies Settings;

/** Settings of an extension server. */
export const extensionSettings = {
  grpcAddress: {
    name: 'GRPC_ADDRESS',
    help: 'address to serve gRPC on, for Envoy Gateway and Envoy',
    default: ':5005',
    parse: parseAddress,
  },
  dataPath: {
    name: 'DATA_PATH',
    help: 'how Envoy reaches the mesh: Proxy (through the proxy of a MeshTailnet) or Direct (Envoy itself is on the mesh)',
    default: 'Proxy',
    parse: parseChoice(['Proxy', 'Direct']),
  },
  maxMessageSize: {
    name: 'MAX_MESSAGE_SIZE',
    help: 'max size of a gRPC request or response; use the same value in the configuration of Envoy Gateway',
    default: '100M',
    parse: parseSize,
  },
  keepaliveMs: {
    name: 'GRPC_KEEPALIVE_TIME',
    help: 'idle time of a connection after which a keepalive ping is sent',
    default: '30s',
    parse: parseDuration,
  },
} as const satisfies Settings;

/** The folder that is read instead of a cluster. */
export const resourcesDir = {
  name: 'RESOURCES_DIR',
  help: 'folder with your YAML files; it is only read',
  parse: parseRequired('name the folder with your YAML files'),
} as const satisfies Settings[string];

/** Settings of standalone alone; `stateHome` is the user's folder for the state of programs. */
export const standaloneSettings = (stateHome: string) =>
  ({
    resourcesDir,
    stateDir: {
      name: 'STATE_DIR',
      help: 'folder for one file, the id of this installation',
      default: `${stateHome}/mesh-gateway`,
      parse: parseRequired('name a folder that nothing else uses'),
    },
    gatewayDir: {
      name: 'GATEWAY_DIR',
      help: 'folder that standalone writes for Envoy Gateway to read',
      default: `${stateHome}/mesh-gateway-envoy-gateway`,
      parse: parseRequired('name a folder that nothing else uses'),
    },
    extensionServerAddress: {
      name: 'EXTENSION_SERVER_ADDRESS',
      help: 'host and port from which Envoy gets endpoints; 127.0.0.1 and the port of GRPC_ADDRESS if not set',
      parse: parseTarget,
    },
    clientId: {
      name: 'MESH_OAUTH_CLIENT_ID',
      help: 'OAuth client of the control API, in place of the Secret mesh-oauth',
      parse: parseOptional,
    },
    clientSecret: {
      name: 'MESH_OAUTH_CLIENT_SECRET',
      help: 'secret of that client; a flag is visible to other users, so prefer the variable or SECRETS_DIR',
      parse: (_setting, text) => (text === '' ? undefined : text),
    },
    secretsDir: {
      name: 'SECRETS_DIR',
      help: 'folder with one folder per Secret and in it one file per key, such as mesh-oauth/client-id',
      parse: parseOptional,
    },
  }) as const satisfies Settings;

/** Settings of a process that runs controllers. */
export const controllerSettings = {
  concurrency: {
    name: 'CONTROLLER_MAX_CONCURRENT_RECONCILES',
    help: 'max concurrent reconciles of each controller',
    default: '10',
    parse: parseCount,
  },
  syncPeriodMs: {
    name: 'SYNC_PERIOD',
    help: 'how often each object is reconciled when nothing changes',
    default: '30s',
    parse: parseDuration,
  },
  healthCheckConcurrency: {
    name: 'HEALTH_CHECK_CONCURRENCY',
    help: 'max concurrent health checks of all endpoints',
    default: '256',
    parse: parseCount,
  },
  endpointMetricLabels: {
    name: 'ENDPOINT_METRIC_LABELS',
    help: 'keys of the metadata of endpoints that are labels of mesh_gateway_endpoint_healthy, such as region,zone',
    default: '',
    parse: parseLabelKeys,
  },
} as const satisfies Settings;

/** Settings of a process that uses the API server of a cluster. */
export const clusterSettings = {
  kubeconfig: {
    name: 'KUBECONFIG',
    help: 'kubeconfig files; not needed in a pod of the cluster',
    default: '',
    parse: (_setting, text) => text.trim(),
  },
} as const satisfies Settings;

/** Settings of a process that runs as a pod. */
export const podSettings = {
  podNamespace: {
    name: 'POD_NAMESPACE',
    help: 'namespace in which mesh-gateway is installed',
    default: NAMESPACE,
    parse: parseNamespace,
  },
  podName: {
    name: 'POD_NAME',
    help: 'name of the pod, by which leader election and events identify it; the host name if not set',
    parse: parseOptional,
  },
} as const satisfies Settings;

/** Settings of a process that finds the pods of Envoys. */
export const envoySettings = {
  proxyNamespaces: {
    name: 'PROXY_NAMESPACES',
    help: 'namespaces of Envoys, which may call the proxies of mesh pods, separated by commas',
    default: ENVOY_POD.namespace,
    parse: (setting, text) => {
      const names = text.split(',').filter(name => name.trim() !== '');
      return [...new Set(names.map(name => parseNamespace(setting, name)))];
    },
  },
} as const satisfies Settings;

/** Settings of an operator about the manifests with which it was installed. */
export const manifestSettings = {
  networkPolicies: {
    name: 'NETWORK_POLICIES',
    help: 'whether the manifests have NetworkPolicies: on or off; with on, it tries whether the cluster enforces them',
    default: 'on',
    parse: parseChoice(['on', 'off']),
  },
} as const satisfies Settings;

/** Settings of a relay. */
export const relaySettings = {
  podNamespace: podSettings.podNamespace,
  addresses: {
    name: 'POD_IPS',
    help: 'IP addresses of the pod, separated by commas, on which the relay and the proxy listen',
    parse: parseIPs,
  },
  configMap: {
    name: 'RELAY_CONFIG_MAP',
    help: 'ConfigMap of that namespace with the ports to listen on and their targets',
    parse: parseRequired('name the ConfigMap that the operator writes for the MeshTailnet'),
  },
  socks: {
    name: 'SOCKS_ADDRESS',
    help: 'IP address and port of the SOCKS5 proxy of meshd, which no other pod and no device reaches',
    default: MESH_POD.socks,
    parse: parseProxy,
  },
  httpPort: {
    name: 'RELAY_HTTP_PORT',
    help: 'TCP port of /metrics, /livez, /readyz and /relay',
    default: String(RELAY.ports.http),
    parse: parsePort,
  },
  idleMs: {
    name: 'ASSOCIATION_IDLE',
    help: 'time without datagrams after which a client is forgotten',
    default: '60s',
    parse: parseDuration,
  },
  meshdSocket: {
    name: 'MESHD_SOCKET',
    help: 'unix socket of the tailscaled of meshd, by which the proxy dials devices and VIP services are served; without it neither is',
    parse: parseOptional,
  },
  frontPort: {
    name: 'FRONT_PORT',
    help: 'TCP port of the proxy (HTTP CONNECT)',
    default: String(MESH_POD.ports.proxy),
    parse: parsePort,
  },
  keptFile: {
    name: 'KEPT_FILE',
    help: 'file that keeps the data of the ConfigMap for a restart while the API server is away',
    parse: parseOptional,
  },
  frontConnections: {
    name: 'FRONT_MAX_CONNECTIONS',
    help: 'max connections of callers to the proxy at once; further ones are reset',
    default: '8192',
    parse: parseCount,
  },
  maxConnections: {
    name: 'MAX_CONNECTIONS',
    help: 'max connections of VIP services to devices at once; further ones are reset',
    default: '1024',
    parse: parseCount,
  },
  maxAssociations: {
    name: 'MAX_ASSOCIATIONS',
    help: 'max clients of all ports at once; datagrams of others are dropped',
    default: '4096',
    parse: parseCount,
  },
} as const satisfies Settings;

/** Where Envoy gets endpoints; all processes of a cluster must have the same value. */
export const dialledAddress = {
  name: 'EXTENSION_SERVER_ADDRESS',
  help: 'host and port from which Envoy gets endpoints; the Service of the extension server if not set',
  parse: parseTarget,
} as const satisfies Settings[string];

/** A valid name of a namespace. */
function parseNamespace(setting: string, text: string): string {
  const name = text.trim();
  if (/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) return name;
  throw new SettingError(setting, `${JSON.stringify(text.slice(0, 63))} is not a valid name of a namespace`);
}

/** Keys of metadata, each of which is a label of its own. */
function parseLabelKeys(setting: string, text: string): readonly string[] {
  const keys = text.split(',').map(key => key.trim());
  const given = keys.filter(Boolean);
  const wrong = given.find(key => !LABEL_KEY.test(key));
  const shown = (key: string) => JSON.stringify(key.slice(0, 63));
  if (wrong !== undefined)
    throw new SettingError(
      setting,
      `${shown(wrong)} is not a key that can be a label; write such as region,zone`,
    );
  if (given.length > MAX_LABEL_KEYS)
    throw new SettingError(setting, `has ${given.length} keys: the most is ${MAX_LABEL_KEYS}`);
  const repeated = repeatedLabelOf(given);
  if (repeated !== undefined)
    throw new SettingError(
      setting,
      `${shown(repeated)} would be the label of an earlier key too: remove one`,
    );
  return given;
}

/** A relay on the wildcard address would be reachable from the mesh, which meshd forwards to 127.0.0.1. */
function parseIPs(setting: string, text: string): readonly string[] {
  const addresses = text.split(',').map(address => address.trim());
  const isIP = (address: string) => familyOf(address) !== undefined && !/^(0\.0\.0\.0|[0:]+)$/.test(address);
  if (addresses.every(isIP)) return [...new Set(addresses)];
  const form = 'write its addresses, such as 10.0.0.7,fd00::7';
  throw new SettingError(
    setting,
    `${JSON.stringify(text.slice(0, 60))} is not a list of IP addresses of a pod; ${form}`,
  );
}

function parseProxy(setting: string, text: string): Required<Address> {
  const proxy = parseSocketAddress(text.trim());
  if (proxy) return { host: proxy.address, port: proxy.port };
  const form = 'write an IP address and a port, such as 10.0.0.7:1055';
  throw new SettingError(
    setting,
    `${JSON.stringify(text.slice(0, 60))} is not an address to connect to; ${form}`,
  );
}
