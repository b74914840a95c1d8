import { API_VERSION } from '../../src/api/generated/kinds.ts';
import type { KindName } from '../../src/api/generated/kinds.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A valid endpoint, with some of its fields replaced. */
export function endpoint(fields: Fields = {}): Fields {
  return {
    name: 'web',
    meshIP: '100.64.0.1',
    meshFQDN: 'web.example.ts.net',
    port: 8080,
    protocol: 'HTTP',
    ...fields,
  };
}

/** A valid MeshEndpoints, with some of its spec replaced. */
export function meshEndpoints(spec: Fields = {}): Fields {
  return objectOf('MeshEndpoints', { tailnet: 'example.ts.net', endpoints: [endpoint()], ...spec });
}

/** A valid MeshTailnet, with some of its spec replaced. */
export function meshTailnet(spec: Fields = {}): Fields {
  return objectOf('MeshTailnet', { tailnet: 'example.ts.net', ...spec });
}

/** A valid MeshBinding, with some of its spec replaced. */
export function meshBinding(spec: Fields = {}): Fields {
  const gateway = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'public' };
  return objectOf('MeshBinding', { targetRefs: [gateway], revision: '0123456789abcdef', ...spec });
}

/** A valid MeshGateway of Gateway public, with some of its spec replaced. */
export function meshGateway(spec: Fields = {}): Fields {
  const gateway = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'public' };
  return objectOf('MeshGateway', { targetRefs: [gateway], ...spec });
}

/** A valid MeshRoutePolicy of HTTPRoute web, with some of its spec replaced. */
export function meshRoutePolicy(spec: Fields = {}): Fields {
  const route = { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'web' };
  return objectOf('MeshRoutePolicy', { targetRefs: [route], ...spec });
}

function objectOf(kind: KindName, spec: Fields): Fields {
  return { apiVersion: API_VERSION, kind, metadata: { name: 'sample' }, spec };
}
