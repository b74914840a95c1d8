import { GROUP } from './generated/kinds.ts';

/** The default namespace of an installation. */
export const NAMESPACE = 'mesh-system';

/** The names of the Deployments, ServiceAccounts and Services. */
export const COMPONENTS = { operator: 'mesh-operator', extensionServer: 'mesh-extension-server' } as const;

/** The container of the operator in its pods. */
export const OPERATOR_CONTAINER = 'manager';

/** A component with a Deployment of its own. */
export type Component = keyof typeof COMPONENTS;

/** The labels that select the pods of a component; they must never change, since a selector is immutable. */
export function selectorOf(component: Component): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': COMPONENTS[component], 'app.kubernetes.io/instance': 'mesh-gateway' };
}

/** Where Envoy Gateway runs Envoys by default, and the labels that it gives their pods. */
export const ENVOY_POD = {
  namespace: 'envoy-gateway-system',
  labels: { 'app.kubernetes.io/managed-by': 'envoy-gateway', 'app.kubernetes.io/component': 'proxy' },
} as const;

/** The ports on which the processes listen. */
export const PORTS = { grpc: 5005, metrics: 8080, health: 8081 } as const;

/** The names, ports and labels that mesh pods have in common. */
export const MESH_POD = {
  container: 'meshd',
  /** Where neither a MeshTailnet nor the operator's configuration names one. */
  image: 'tailscale/tailscale:v1.102.5',
  ports: { proxy: 1055, metrics: 9002 },
  /** The SOCKS5 proxy of tailscaled: what the tailnet sends is forwarded to 127.0.0.1, and other pods reach neither. */
  socks: '127.0.0.2:1055',
  /** Selects the mesh pods of all tailnets. */
  labels: { 'app.kubernetes.io/name': 'mesh-endpoint' },
  /** The label whose value is the name of the MeshTailnet. */
  tailnetLabel: `${GROUP}/tailnet`,
} as const;

/** The ConfigMap of the operator's namespace with the CA certificates that tls.caRef of MeshEndpoints names. */
export const TRUST = { configMap: 'mesh-trust' } as const;

/** The ConfigMap of the operator's namespace in which each replica reports whether NetworkPolicies are enforced. */
export const NETWORK_POLICY_REPORTS = { configMap: 'mesh-network-policies' } as const;

/** The HTTPRoutes of the operator's namespace that name MeshEndpoints of L4 routes, so that Envoy Gateway reads these. */
export const ANCHOR = {
  name: 'mesh-anchor',
  label: `${GROUP}/anchor`,
  /** No listener has this name, so that they attach to none. */
  sectionName: GROUP,
} as const;

/** The ClusterRole with which the owner of a namespace lets the operator read the Secrets of checks there. */
export const SECRET_READER = 'mesh-secret-reader';

/** The annotation of a MeshTailnet whose control API never comes back: it is deleted without what it has in the tailnet. */
export const SKIP_CLEANUP = `${GROUP}/skip-cleanup`;

/** The annotation of a MeshGateway that asks to remove stale registrations of VIP services now; its value is `true`. */
export const FORCE_CLEANUP = `${GROUP}/force-cleanup`;

/** The verb on meshendpoints/status that the admission policy requires for the whole cluster, beside those of Kubernetes. */
export const REPORT = 'report';

/** The name of a cluster-scoped object of an installation, by the namespace of the installation. */
export function clusterNameIn(namespace: string, name: string): string {
  return `${name}.${namespace}`;
}

/** The name of the StatefulSet of a MeshTailnet, and of all its objects except the headless Service. */
export function poolName(tailnet: string): string {
  return `meshd-${tailnet}`;
}

/** The container of mesh pods that is their front: their proxy, and what carries datagrams. */
export const RELAY = {
  container: 'relay',
  ports: { http: 9003 },
  portName: 'relay-http',
  /** The job of its metrics. */
  job: 'mesh-relay',
  /** Where tailscaled listens for the LocalAPI, by which the container dials devices and serves VIP services. */
  meshdSocket: '/var/run/tailscale/tailscaled.sock',
  /** The last data of its ConfigMap, which outlives the container. */
  keptFile: '/var/run/tailscale/relay.json',
  /** Of the pods that have the container; its value is `true`. */
  label: `${GROUP}/relay`,
} as const;

/** The name of the Service whose endpoints are the relays of a MeshTailnet, and of the ConfigMap with their targets. */
export function relayName(tailnet: string): string {
  return `mesh-relay-${tailnet}`;
}

/** The address of the extension server of a namespace, for Envoy Gateway and Envoys. */
export function extensionServerIn(namespace: string): string {
  return `${COMPONENTS.extensionServer}.${namespace}.svc.cluster.local:${PORTS.grpc}`;
}

/** The label of every object that mesh-gateway creates. */
export const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'mesh-gateway' } as const;

/** The Secret with the OAuth client of the control API, unless a MeshTailnet names another. */
export const OAUTH_SECRET = 'mesh-oauth';

const END = `.${GROUP}`;

/** An object alternates between its own name and this many others. */
export const MAX_OTHER_NAMES = 1;

/** The longest name that the API server accepts. */
const MAX_LENGTH = 253;

/** The nth name of an object, under which Envoy Gateway sees a new object; undefined if it is too long. 0 is its own name. */
export function otherNameOf(declared: string, nth: number): string | undefined {
  const name = nth === 0 ? declared : `${declared}.${nth}${END}`;
  return name.length <= MAX_LENGTH ? name : undefined;
}

/** The own name of an object and the number of its name, by any of its names. */
export function declaredNameOf(name: string): { readonly declared: string; readonly nth: number } {
  if (!name.endsWith(END)) return { declared: name, nth: 0 };
  const [, declared, nth] = /^(.+)\.([1-9]\d{0,8})$/.exec(name.slice(0, -END.length)) ?? [];
  return declared === undefined ? { declared: name, nth: 0 } : { declared, nth: Number(nth) };
}

const VENDOR_API = 'https://api.tailscale.com';

/** Whether a URL is that of the vendor's control API. */
export function isVendorAPI(url: string): boolean {
  return new URL(url).hostname === new URL(VENDOR_API).hostname;
}

/** The control API of a domain where none is configured: the vendor's, for its own domains. */
export function defaultControlURL(domain: string): string | undefined {
  return domain.toLowerCase().endsWith('.ts.net') ? VENDOR_API : undefined;
}

/** The longest name that a MeshTailnet can have, because mesh pods are named after it. */
const MAX_TAILNET_NAME_LENGTH = 40;

/** The name of the MeshTailnet that is created for a domain. */
export function createdTailnetName(domain: string): string {
  const name = domain.toLowerCase().replaceAll('.', '-');
  return name.length <= MAX_TAILNET_NAME_LENGTH ? name : OAUTH_SECRET;
}

const LABEL = '[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?';
const DNS_LABEL = new RegExp(`^${LABEL}$`);
const FULL_NAME = new RegExp(`^${LABEL}(\\.${LABEL})+$`);

/** Whether a text is a DNS label, as the name of an endpoint is. */
export function isLabel(text: string): boolean {
  return DNS_LABEL.test(text);
}

/** Whether a text is a DNS name of several labels, as meshFQDN is. */
export function isFullName(text: string): boolean {
  return text.length <= 253 && FULL_NAME.test(text);
}
