import type { Kinds, MeshEndpoint } from '../api/generated/types.ts';
import { endpointsOf } from '../api/objects/endpoints.ts';
import { oldestOf } from '../api/objects/oldest.ts';
import { caRefOf } from '../api/trust.ts';
import { meshEndpointsRefOf } from './backend-refs.ts';
import type { RouteBackendRef } from './backend-refs.ts';
import { isAllowed, isPermitted } from './permissions.ts';
import type { TrafficResources } from './traffic-resources.ts';
import { unusedEndpoint, unusedReference } from './unused.ts';
import type { UnusedBackend } from './unused.ts';
import { originatesTls, upstreamFor } from './upstream-protocol.ts';
import type { UpstreamProtocol } from './upstream-protocol.ts';
import { upstreamTlsOf } from './upstream-tls.ts';
import type { UpstreamTls } from './upstream-tls.ts';

/** An endpoint that gets traffic. */
export type ResolvedEndpoint = {
  readonly endpoint: MeshEndpoint;
  /** The object that lists it. */
  readonly object: Kinds['MeshEndpoints'];
  /** The MeshTailnet of the object. */
  readonly tailnet: Kinds['MeshTailnet'];
  /** The TLS that Envoy originates, if any. */
  readonly tls?: UpstreamTls;
};

/** An endpoint that can be used, unless it conflicts with another one of the rule. */
export type Candidate = {
  readonly backendRef: RouteBackendRef;
  readonly protocol: UpstreamProtocol;
  readonly resolved: ResolvedEndpoint;
};

/** The candidates that remain after a step, and why the others are not used. */
export type Filtered = { readonly kept: readonly Candidate[]; readonly unused: readonly UnusedBackend[] };

type ReferencedObjects = {
  readonly object: Kinds['MeshEndpoints'];
  readonly tailnet: Kinds['MeshTailnet'];
};

/**
 * The endpoints that a backendRef refers to: those of its MeshEndpoints with exactly its port, if the route may refer to
 * the object, the object's namespace may use its MeshTailnet, and the kind of route supports the endpoint's protocol.
 */
export function resolveBackendRef(resources: TrafficResources, backendRef: RouteBackendRef): Filtered {
  if (backendRef.ref.weight === 0) return { kept: [], unused: [] };
  const objects = referencedObjects(resources, backendRef);
  if ('reason' in objects) return { kept: [], unused: [objects] };
  const endpoints = endpointsOf(objects.object);
  const { port } = backendRef.ref;
  if (port === undefined) return { kept: [], unused: [unusedReference.portMissing(backendRef, endpoints)] };
  const withPort = endpoints.filter(endpoint => endpoint.port === port);
  if (withPort.length === 0)
    return { kept: [], unused: [unusedReference.portNotFound(backendRef, endpoints)] };
  const kept: Candidate[] = [];
  const unused: UnusedBackend[] = [];
  for (const endpoint of withPort) {
    const result = resolveEndpoint(resources, backendRef, objects, endpoint);
    if ('reason' in result) unused.push(result);
    else kept.push(result);
  }
  return { kept, unused };
}

/** The MeshEndpoints of a backendRef and its MeshTailnet, if both exist and may be used. */
function referencedObjects(
  resources: TrafficResources,
  backendRef: RouteBackendRef,
): ReferencedObjects | UnusedBackend {
  const { kind, metadata } = backendRef.route;
  if (!isPermitted(resources, { kind, namespace: metadata.namespace ?? '' }, backendRef.ref)) {
    return unusedReference.notPermitted(backendRef);
  }
  const object = resources.meshEndpoints(meshEndpointsRefOf(backendRef));
  if (!object) return unusedReference.notFound(backendRef);
  const { tailnet: domain } = object.spec;
  const tailnet = oldestOf(resources.tailnets(domain));
  if (!tailnet) return unusedReference.tailnetNotFound(backendRef, domain);
  if (!isAllowed(resources, tailnet.spec.allowedNamespaces, backendRef.ref.namespace)) {
    return unusedReference.namespaceNotAllowed(backendRef, tailnet.metadata.name);
  }
  return { object, tailnet };
}

function resolveEndpoint(
  resources: TrafficResources,
  backendRef: RouteBackendRef,
  { object, tailnet }: ReferencedObjects,
  endpoint: MeshEndpoint,
): Candidate | UnusedBackend {
  const upstream = upstreamFor(endpoint.protocol, backendRef.route.kind);
  if (!upstream) return unusedEndpoint.protocolMismatch(backendRef, endpoint);
  const { protocol } = upstream;
  if (!originatesTls(upstream, endpoint))
    return { backendRef, protocol, resolved: { endpoint, object, tailnet } };
  const caRef = caRefOf(object, endpoint);
  const trusted = caRef && resources.trusted(caRef);
  if (trusted && trusted.is !== 'found') return unusedEndpoint.caMissing(backendRef, endpoint, trusted);
  const ca = trusted?.pem ?? endpoint.tls?.ca;
  const tls = upstreamTlsOf(endpoint, { domain: object.spec.tailnet, protocol, ca });
  return { backendRef, protocol, resolved: { endpoint, object, tailnet, tls } };
}
