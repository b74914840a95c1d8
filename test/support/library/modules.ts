import type { RouteKind } from '../../../src/api/key.ts';

/** The function that makes a kind of route. */
export const BUILDERS: Readonly<Record<RouteKind, string>> = {
  HTTPRoute: 'httpRoute',
  GRPCRoute: 'grpcRoute',
  TLSRoute: 'tlsRoute',
  TCPRoute: 'tcpRoute',
  UDPRoute: 'udpRoute',
};

/** The source text of an endpoint. */
export function endpointText(name: string, port: number | string, protocol: string): string {
  return `{ name: '${name}', meshIP: '100.64.0.1', meshFQDN: '${name}.example.ts.net', port: ${port}, protocol: '${protocol}' }`;
}

/**
 * The source text of a module that declares `web` with some endpoints and other fields of its spec, followed by more
 * code.
 */
export function moduleWith(endpoints: readonly string[], text: string, more = ''): string {
  const list = endpoints.length === 0 ? '' : `endpoints: [${endpoints.join(', ')}],`;
  return [
    "import { backend, grpcRoute, httpRoute, meshEndpoints, tcpRoute, tlsRoute, udpRoute } from 'mesh-gateway';",
    `export const web = meshEndpoints({ metadata: { name: 'web' }, tailnet: 'example.ts.net', ${list} ${more} });`,
    text,
    'export const all = [backend, grpcRoute, httpRoute, tcpRoute, tlsRoute, udpRoute];',
  ].join('\n');
}

/** The source text of a route of a kind with one backend. */
export function routeText(kind: RouteKind, backend: string): string {
  const hostnames = kind === 'TLSRoute' ? "hostnames: 'web.example.com', " : '';
  return `export const route = ${BUILDERS[kind]}({ metadata: { name: 'web' }, parentRefs: 'public', ${hostnames}backendRefs: ${backend} });`;
}
