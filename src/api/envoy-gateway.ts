import { isIP } from 'node:net';
import { stringify } from 'yaml';
import { GROUP, VERSION } from './generated/kinds.ts';

/** The controller that a GatewayClass names for Envoy Gateway. */
export const ENVOY_GATEWAY_CONTROLLER = 'gateway.envoyproxy.io/gatewayclass-controller';

/** What Envoy Gateway is to work with when objects come from files and Envoy runs on the same machine. */
export type EnvoyGatewayOptions = {
  /** The folder with the objects. */
  readonly resources: string;
  /** Where it keeps its own things; folders of its user if not given. */
  readonly host?: Readonly<Record<'configHome' | 'dataHome' | 'stateHome' | 'runtimeDir', string>>;
  /** Nothing where there is no extension server. */
  readonly extension?: EnvoyGatewayExtension;
};

/** The extension server that Envoy Gateway asks. */
type EnvoyGatewayExtension = {
  /** host:port */
  readonly address: string;
  /** Of calls and answers: bytes, or a size such as 100M. */
  readonly maxMessageSize: number | string;
};

/** The configuration of Envoy Gateway, as far as it must be so. */
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

/** How Envoy Gateway is told of the extension server. */
export function extensionManager({ address, maxMessageSize }: EnvoyGatewayExtension): object {
  return {
    policyResources: [{ group: GROUP, version: VERSION, kind: 'MeshBinding' }],
    backendResources: [{ group: GROUP, version: VERSION, kind: 'MeshEndpoints' }],
    hooks: {
      xdsTranslator: {
        // Hooks are called in sequence within each translation: this one alone is one call, whatever routes there are.
        post: ['Translation'],
        // Private keys of listeners are none of an extension's business.
        translation: { cluster: { includeAll: true }, secret: { includeAll: false } },
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

/** The configuration of Envoy Gateway as a file for people. */
export function envoyGatewayFile(wish: EnvoyGatewayOptions): string {
  return `# For envoy-gateway server --config-path FILE, on the machine of mesh-gateway standalone.\n${stringify(envoyGatewayConfig(wish))}`;
}
