import { GATEWAY_GROUP } from '../../src/api/objects/gateway-api.ts';
import { GROUP } from '../../src/api/generated/kinds.ts';
import type { RouteKind } from '../../src/api/key.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The same object with a name, such as web or team-a/web, and perhaps more metadata. */
export function named(object: object, name: string, metadata: Fields = {}): object {
  const [last = '', namespace] = name.split('/').reverse();
  const place = namespace === undefined ? {} : { namespace };
  return { ...object, metadata: { name: last, ...place, ...metadata } };
}

/** A backendRef to a MeshEndpoints, with some of its fields replaced. */
export function meshBackend(fields: Fields = {}): Fields {
  return { group: GROUP, kind: 'MeshEndpoints', name: 'web', port: 8080, ...fields };
}

/** A valid route of a kind, as a user writes it, that sends all traffic to a MeshEndpoints. */
export function route(kind: RouteKind, name: string, spec: Fields = {}, version = 'v1'): object {
  const hostnames = kind === 'TLSRoute' ? { hostnames: ['web.example.com'] } : {};
  const rules = [{ backendRefs: [meshBackend()] }];
  return gatewayObject(
    kind,
    name,
    { parentRefs: [{ name: 'public' }], ...hostnames, rules, ...spec },
    version,
  );
}

/** A Gateway with a listener for each kind of route, which accept those of all namespaces, with some of its spec replaced. */
export function openGateway(name: string, spec: Fields = {}): object {
  const allowedRoutes = { namespaces: { from: 'All' } };
  const listeners = ['HTTP', 'TLS', 'TCP', 'UDP'].map((protocol, at) => {
    const tls = protocol === 'TLS' && { tls: { mode: 'Passthrough' } };
    return { name: protocol.toLowerCase(), port: 80 + at, protocol, allowedRoutes, ...tls };
  });
  return gatewayObject('Gateway', name, { gatewayClassName: 'mesh', listeners, ...spec });
}

/** An object of a kind of Gateway API. */
export function gatewayObject(kind: string, name: string, spec: Fields, version = 'v1'): object {
  return named({ apiVersion: `${GATEWAY_GROUP}/${version}`, kind, spec }, name);
}
