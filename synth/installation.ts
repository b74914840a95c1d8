import { COMPONENTS, MANAGED_BY } from '../src/api/names.ts';
import type { Installation } from './generated/types.ts';

/** What charts are made from: what users configured, and the version that they install. */
export type Install = { readonly installation: Installation; readonly version: string };

/** A part that runs by itself. */
export type Component = keyof typeof COMPONENTS;

const ROLES: Readonly<Record<Component, string>> = {
  operator: 'operator',
  extensionServer: 'extension-server',
};

/** The ports on which our processes listen. */
export const PORTS = { grpc: 5005, metrics: 8080, health: 8081 } as const;

/** Where the proxies of mesh pods listen, where they tell how they are, and by which label they are known. */
export const MESH_POD = {
  ports: { proxy: 1055, metrics: 9002 },
  labels: { 'app.kubernetes.io/name': 'mesh-endpoint' },
} as const;

/** By what the pods of a component are known; it must never change, as selectors cannot. */
export function selectorOf(component: Component): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': COMPONENTS[component], 'app.kubernetes.io/instance': 'mesh-gateway' };
}

/** The labels of an object of a component, or of one that belongs to none; what is meant for it alone counts more than what is meant for all. */
export function labelsOf(
  { installation, version }: Install,
  component?: Component,
  alone: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const own = component
    ? { ...selectorOf(component), 'app.kubernetes.io/component': ROLES[component] }
    : { 'app.kubernetes.io/name': 'mesh-gateway', 'app.kubernetes.io/instance': 'mesh-gateway' };
  return { ...installation.labels, ...alone, ...own, ...MANAGED_BY, 'app.kubernetes.io/version': version };
}

/** The name of an object that belongs to no namespace: two installations must not share one. */
export function clusterName({ installation }: Install, name: string): string {
  return `${name}.${installation.namespace}`;
}

/** Where the extension server is found: by Envoy Gateway, and by every Envoy. */
export function extensionServerAddress({ installation }: Install): string {
  const { namespace, clusterDomain } = installation;
  return `${COMPONENTS.extensionServer}.${namespace}.svc.${clusterDomain}:${PORTS.grpc}`;
}

/** The image of our processes. */
export function imageOf({ installation, version }: Install): string {
  const { repository, tag = version, digest } = installation.image;
  return digest === undefined ? `${repository}:${tag}` : `${repository}@${digest}`;
}
