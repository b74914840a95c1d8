import { GATEWAY_GROUP } from '../../../src/api/objects/gateway-api.ts';
import { API_VERSION, GROUP } from '../../../src/api/generated/kinds.ts';
import { NAMESPACE, relayName } from '../../../src/api/names.ts';
import type { RouteKind } from '../../../src/api/key.ts';
import { gatewayObject, meshBackend, named, route } from '../declared.ts';
import { endpoint, meshBinding, meshEndpoints, meshTailnet } from '../objects.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The metadata and status of an object. */
type Metadata = { readonly metadata?: Fields; readonly status?: Fields };

/** Endpoints with different addresses; the first is at 100.64.0.1. */
export function endpointList(count: number, fields: Fields = {}): readonly Fields[] {
  return Array.from({ length: count }, (_, at) => {
    const name = `e${at + 1}`;
    const meshIP = `100.64.${Math.floor((at + 1) / 250)}.${((at + 1) % 250) + (at + 1 < 250 ? 0 : 1)}`;
    return endpoint({ name, meshIP, meshFQDN: `${name}.example.ts.net`, ...fields });
  });
}

/** A MeshEndpoints on tailnet example.ts.net. */
export function endpointsObject(
  name: string,
  endpoints: readonly Fields[] = [endpoint()],
  { metadata, status, ...spec }: Metadata & Fields = {},
): object {
  return withStatus(named(meshEndpoints({ endpoints, ...spec }), name, metadata), status);
}

/** A ConfigMap. */
export function configMapObject(name: string, data: Fields): object {
  return named({ apiVersion: 'v1', kind: 'ConfigMap', data }, name);
}

/** A MeshTailnet of example.ts.net with an external proxy. */
export function tailnetObject(name = 'main', { metadata, status, ...spec }: Metadata & Fields = {}): object {
  const pool = { mode: 'External', addresses: ['10.0.0.9:1055'] };
  return withStatus(named(meshTailnet({ pool, ...spec }), name, metadata), status);
}

/** A MeshTailnet of example.ts.net with ready mesh pods. */
export function managedTailnet(name = 'main', fields: Metadata & Fields = {}): object {
  const pool = { ready: 2, desired: 2, proxyAddress: '10.96.0.7:1055' };
  return tailnetObject(name, { pool: {}, status: { pool }, ...fields });
}

/** The EndpointSlice of the mesh pods of a MeshTailnet that relay datagrams, by their addresses. */
export function relaysObject(
  tailnet: string,
  pods: Readonly<Record<string, 'ready' | 'unready' | 'terminating'>>,
  namespace: string = NAMESPACE,
): object {
  const endpoints = Object.entries(pods).map(([address, is]) => ({
    addresses: [address],
    conditions: { ready: is === 'ready', serving: is !== 'unready', terminating: is === 'terminating' },
  }));
  const service = relayName(tailnet);
  return sliceObject(service, endpoints, { name: `${namespace}/${service}-x`, ports: null });
}

/** A route; each list of backends is a rule. */
export function routeObject(kind: RouteKind, name: string, ...rules: readonly (readonly Fields[])[]): object {
  return route(kind, name, { rules: rules.map(backendRefs => ({ backendRefs })) });
}

/** An HTTPRoute; each list of backends is a rule. */
export function httpRoute(name: string, ...rules: readonly (readonly Fields[])[]): object {
  return routeObject('HTTPRoute', name, ...rules);
}

/** A backend of a route: MeshEndpoints by name, such as web or team-a/web, and port. */
export function backend(name: string, fields: Fields = {}): Fields {
  const [last, namespace] = name.split('/').reverse();
  return meshBackend({ name: last, ...(namespace !== undefined && { namespace }), ...fields });
}

/** A backendRef to a Service. */
export function service(fields: Fields = {}): Fields {
  return { name: 'shop', port: 80, ...fields };
}

/** A Service with one port: 80 by default. */
export function serviceObject(name: string, ports: readonly Fields[] = [{ port: 80 }]): object {
  return named({ apiVersion: 'v1', kind: 'Service', spec: { ports } }, name);
}

/** An EndpointSlice of a Service of namespace default. */
export function sliceObject(
  service: string,
  endpoints: readonly Fields[],
  { name = `${service}-x`, ...more }: Fields & { readonly name?: string } = {},
): object {
  const labels = { 'kubernetes.io/service-name': service };
  const slice = { addressType: 'IPv4', ports: [{ name: '', port: 8080 }], endpoints, ...more };
  return named({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', ...slice }, name, { labels });
}

/** A Backend of Envoy Gateway. */
export function backendObject(name: string, spec: Fields): object {
  return named({ apiVersion: 'gateway.envoyproxy.io/v1alpha1', kind: 'Backend', spec }, name);
}

/** A BackendTLSPolicy for a Service of its namespace. */
export function tlsPolicyObject(name: string, service: string, target: Fields = {}): object {
  return gatewayObject('BackendTLSPolicy', name, {
    targetRefs: [{ group: '', kind: 'Service', name: service, ...target }],
    validation: { wellKnownCACertificates: 'System', hostname: `${service}.example.com` },
  });
}

/** A ReferenceGrant for routes of a kind and namespace to the MeshEndpoints of a namespace. */
export function grantObject(
  namespace: string,
  { name = 'grant', from = {}, to = {} }: { name?: string; from?: Fields; to?: Fields } = {},
): object {
  return gatewayObject('ReferenceGrant', `${namespace}/${name}`, {
    from: [{ group: GATEWAY_GROUP, kind: 'HTTPRoute', namespace: 'default', ...from }],
    to: [{ group: GROUP, kind: 'MeshEndpoints', ...to }],
  });
}

/** A namespace with labels. */
export function namespaceObject(name: string, labels: Fields = {}): object {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
}

/** The MeshBinding of a Gateway of namespace default. */
export function bindingObject(gateway: string, settings: Fields = {}): object {
  const targetRefs = [{ group: GATEWAY_GROUP, kind: 'Gateway', name: gateway }];
  return named(meshBinding({ targetRefs, settings }), `default/${gateway}`);
}

function withStatus(object: object, status: Fields | undefined): object {
  return { apiVersion: API_VERSION, ...object, ...(status && { status }) };
}
