import { NAMESPACE } from '../api/names.ts';
import {
  parseCount,
  parseDuration,
  parseSize,
  parseChoice,
  parseOptional,
  parseRequired,
  parseTarget,
} from './settings.ts';
import { parseAddress } from '../telemetry/address.ts';
import { parseLogLevel } from '../telemetry/log.ts';
import { SettingError } from '../telemetry/setting-error.ts';
import type { Settings } from './settings.ts';

/** What every process is told about telling what it does. */
export const telemetrySettings = {
  logLevel: {
    name: 'LOG_LEVEL',
    help: 'debug, info, warn or error',
    usual: 'info',
    parse: (_setting, text) => parseLogLevel(text),
  },
  metricsAddress: {
    name: 'METRICS_ADDRESS',
    help: 'where Prometheus and pprof ask',
    usual: ':8080',
    parse: parseAddress,
  },
  healthAddress: {
    name: 'HEALTH_ADDRESS',
    help: 'where /healthz and /readyz are; Envoy Gateway on the same machine takes 8081',
    usual: ':8081',
    parse: parseAddress,
  },
  pprof: { name: 'PPROF', help: 'on or off', usual: 'on', parse: parseChoice(['on', 'off']) },
} as const satisfies Settings;

/** What an extension server is told. */
export const extensionSettings = {
  grpcAddress: {
    name: 'GRPC_ADDRESS',
    help: 'where Envoy Gateway and Envoy call',
    usual: ':5005',
    parse: parseAddress,
  },
  dataPath: {
    name: 'DATA_PATH',
    help: 'how Envoy reaches the mesh: by the Proxy of a MeshTailnet, or Direct where it is on the mesh itself',
    usual: 'Proxy',
    parse: parseChoice(['Proxy', 'Direct']),
  },
  maxMessageSize: {
    name: 'MAX_MESSAGE_SIZE',
    help: 'of calls and answers; as in the configuration of Envoy Gateway',
    usual: '100M',
    parse: parseSize,
  },
  keepaliveMs: {
    name: 'GRPC_KEEPALIVE_TIME',
    help: 'after so long without a word a caller is asked whether it is there',
    usual: '30s',
    parse: parseDuration,
  },
} as const satisfies Settings;

/** The folder that is read in place of a cluster. */
export const resourcesDir = {
  name: 'RESOURCES_DIR',
  help: 'the folder with your YAML files; nothing is written there',
  parse: parseRequired('name the folder with your YAML files'),
} as const satisfies Settings[string];

/** The settings of standalone alone, where programs of this user keep their state. */
export const standaloneSettings = (stateHome: string) =>
  ({
    resourcesDir,
    stateDir: {
      name: 'STATE_DIR',
      help: 'the folder for one file, the id of this installation',
      usual: `${stateHome}/mesh-gateway`,
      parse: parseRequired('name a folder that is ours alone'),
    },
    gatewayDir: {
      name: 'GATEWAY_DIR',
      help: 'the folder for Envoy Gateway to read, made and kept by us',
      usual: `${stateHome}/mesh-gateway-envoy-gateway`,
      parse: parseRequired('name a folder that is ours alone'),
    },
    extensionServerAddress: {
      name: 'EXTENSION_SERVER_ADDRESS',
      help: 'what Envoy dials for endpoints; this machine at the port of GRPC_ADDRESS if not given',
      parse: parseTarget,
    },
  }) as const satisfies Settings;

/** What a process is told that runs controllers. */
export const controllerSettings = {
  concurrency: {
    name: 'CONTROLLER_MAX_CONCURRENT_RECONCILES',
    help: 'so many objects each controller looks at at once',
    usual: '10',
    parse: parseCount,
  },
  syncPeriodMs: {
    name: 'SYNC_PERIOD',
    help: 'so often each object is looked at when nothing changes',
    usual: '30s',
    parse: parseDuration,
  },
} as const satisfies Settings;

/** What a process is told that speaks to the API server of a cluster. */
export const clusterSettings = {
  kubeconfig: {
    name: 'KUBECONFIG',
    help: 'files that say how the cluster is reached; not needed inside of it',
    usual: '',
    parse: (_setting, text) => text.trim(),
  },
} as const satisfies Settings;

/** What a process is told that is one of several in a cluster. */
export const podSettings = {
  podNamespace: {
    name: 'POD_NAMESPACE',
    help: 'the namespace of everything that is ours',
    usual: NAMESPACE,
    parse: parseNamespace,
  },
  podName: {
    name: 'POD_NAME',
    help: 'what this process is called among its like; the name of the machine if not given',
    parse: parseOptional,
  },
} as const satisfies Settings;

/** What Envoy dials for endpoints; all processes of a cluster must be told the same. */
export const dialledAddress = {
  name: 'EXTENSION_SERVER_ADDRESS',
  help: 'what Envoy dials for endpoints; the Service in our namespace if not given',
  parse: parseTarget,
} as const satisfies Settings[string];

/** A name that a namespace can have. */
function parseNamespace(setting: string, text: string): string {
  const name = text.trim();
  if (/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) return name;
  throw new SettingError(
    setting,
    `${JSON.stringify(text.slice(0, 63))} is not a name that a namespace can have`,
  );
}
