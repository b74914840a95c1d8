import { clusterNameIn, COMPONENTS, MANAGED_BY, PORTS, selectorOf } from '../src/api/names.ts';
import type { Component } from '../src/api/names.ts';
import type { Installation } from './generated/types.ts';

/** The input of charts: the configuration, and the version to install. */
export type Install = { readonly installation: Installation; readonly version: string };

const ROLES: Readonly<Record<Component, string>> = {
  operator: 'operator',
  extensionServer: 'extension-server',
};

/** The labels of an object, of a component or of none; `alone` overrides the labels of the configuration. */
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

/** The name of a cluster-scoped object: two installations must not share one. */
export function clusterName({ installation }: Install, name: string): string {
  return clusterNameIn(installation.namespace, name);
}

/** The address of the extension server, for Envoy Gateway and every Envoy. */
export function extensionServerAddress({ installation }: Install): string {
  const { namespace, clusterDomain } = installation;
  return `${COMPONENTS.extensionServer}.${namespace}.svc.${clusterDomain}:${PORTS.grpc}`;
}

/** The namespaces of Envoys. */
export function proxyNamespacesOf({ installation }: Install): readonly string[] {
  const { namespace, proxyNamespaces = [namespace] } = installation.envoyGateway;
  return proxyNamespaces;
}

/** The image of the operator and the extension server. */
export function imageOf({ installation, version }: Install): string {
  const { repository, tag = version, digest } = installation.image;
  return digest === undefined ? `${repository}:${tag}` : `${repository}@${digest}`;
}
