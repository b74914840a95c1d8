import { isIP } from 'node:net';
import { stringify } from 'yaml';
import type { AccessRule } from './access.ts';
import { GROUP, kinds, VERSION } from './generated/kinds.ts';

/** The controller that a GatewayClass names for Envoy Gateway. */
export const ENVOY_GATEWAY_CONTROLLER = 'gateway.envoyproxy.io/gatewayclass-controller';

/** What Envoy Gateway needs for the kinds in its configuration: it replaces the whole status of a policy. */
export const envoyGatewayAccess: readonly AccessRule[] = [
  {
    apiGroups: [GROUP],
    resources: [kinds.MeshBinding.plural, kinds.MeshEndpoints.plural],
    verbs: ['get', 'list', 'watch'],
  },
  { apiGroups: [GROUP], resources: [`${kinds.MeshBinding.plural}/status`], verbs: ['update'] },
];

/** The configuration of an Envoy Gateway that reads objects from files and runs Envoy on the same machine. */
export type EnvoyGatewayOptions = {
  /** The folder with the objects. */
  readonly resources: string;
  /** Folders for its own files; folders of its user if not set. */
  readonly host?: Readonly<Record<'configHome' | 'dataHome' | 'stateHome' | 'runtimeDir', string>>;
  readonly extension?: EnvoyGatewayExtension;
};

/** The extension server that Envoy Gateway calls. */
type EnvoyGatewayExtension = {
  /** host:port */
  readonly address: string;
  /** Max size of a request or response: bytes, or a size such as 100M. */
  readonly maxMessageSize: number | string;
};

/** The fields of Envoy Gateway's configuration that standalone needs. */
export function envoyGatewayConfig({ resources, host, extension }: EnvoyGatewayOptions): object {
  return {
    apiVersion: 'gateway.envoyproxy.io/v1alpha1',
    kind: 'EnvoyGateway',
    gateway: { controllerName: ENVOY_GATEWAY_CONTROLLER },
    provider: {
      type: 'Custom',
      custom: {
        resource: { type: 'File', file: { paths: [resources] } },
        infrastructure: { type: 'Host', host: host ?? {} },
      },
    },
    extensionApis: { enableBackend: true },
    ...(extension ? { extensionManager: extensionManager(extension) } : {}),
  };
}

/** The field `extensionManager` of Envoy Gateway's configuration. */
export function extensionManager({ address, maxMessageSize }: EnvoyGatewayExtension) {
  return {
    policyResources: [{ group: GROUP, version: VERSION, kind: 'MeshBinding' }],
    backendResources: [{ group: GROUP, version: VERSION, kind: 'MeshEndpoints' }],
    hooks: {
      xdsTranslator: {
        // Hooks are called in sequence in each translation: this one is a single call, independent of the number of routes.
        post: ['Translation'],
        // The extension does not need the private keys of listeners.
        translation: {
          cluster: { includeAll: true },
          route: { includeAll: true },
          secret: { includeAll: false },
        },
      },
    },
    service: serviceAt(address),
    failOpen: false,
    maxMessageSize: String(maxMessageSize),
  };
}

function serviceAt(address: string): object {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1');
  const port = Number(address.slice(colon + 1));
  return isIP(host) ? { ip: { address: host, port } } : { fqdn: { hostname: host, port } };
}

/** The configuration of Envoy Gateway as a YAML file. */
export function envoyGatewayFile(options: EnvoyGatewayOptions): string {
  return `# For envoy-gateway server --config-path FILE, on the machine of mesh-gateway standalone.\n${stringify(envoyGatewayConfig(options))}`;
}
