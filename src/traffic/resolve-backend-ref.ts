import { unusedEndpoint, unusedReference } from './unused.ts';
import type { UnusedBackend } from './unused.ts';
import { originatesTls, upstreamFor } from './upstream-protocol.ts';
import type { UpstreamProtocol } from './upstream-protocol.ts';
import type { Kinds, MeshEndpoint } from '../api/generated/types.ts';
import { upstreamTlsOf } from './upstream-tls.ts';
import type { UpstreamTls } from './upstream-tls.ts';
import type { TrafficResources } from './traffic-resources.ts';
import { isAllowed, isPermitted } from './permissions.ts';
import { meshEndpointsRefOf } from './backend-refs.ts';
import type { RouteBackendRef } from './backend-refs.ts';

/** An endpoint that can be used as far as it alone is concerned. */
export type Candidate = {
  readonly at: RouteBackendRef;
  readonly resolved: ResolvedEndpoint;
  readonly protocol: UpstreamProtocol;
};

/** What is left of some candidates, and why the others are not. */
export type Filtered = { readonly kept: readonly Candidate[]; readonly unused: readonly UnusedBackend[] };

type ReferencedObjects = { readonly object: Kinds['MeshEndpoints']; readonly tailnet: Kinds['MeshTailnet'] };

/** The endpoints that a reference means, each judged by itself; one without weight means none. */
export function resolveBackendRef(resources: TrafficResources, at: RouteBackendRef): Filtered {
  if (at.ref.weight === 0) return { kept: [], unused: [] };
  const source = referencedObjects(resources, at);
  if ('reason' in source) return { kept: [], unused: [source] };
  const endpoints = source.object.spec.endpoints ?? [];
  const { port } = at.ref;
  if (port === undefined) return { kept: [], unused: [unusedReference.portMissing(at, endpoints)] };
  const meant = endpoints.filter(endpoint => endpoint.port === port);
  if (meant.length === 0) return { kept: [], unused: [unusedReference.portNotFound(at, endpoints)] };
  const kept: Candidate[] = [];
  const unused: UnusedBackend[] = [];
  for (const endpoint of meant) {
    const judged = resolveEndpoint(at, source, endpoint);
    if ('reason' in judged) unused.push(judged);
    else kept.push(judged);
  }
  return { kept, unused };
}

/** The object that a reference is to and the MeshTailnet that leads there, if both may be used. */
function referencedObjects(
  resources: TrafficResources,
  at: RouteBackendRef,
): ReferencedObjects | UnusedBackend {
  const { kind, metadata } = at.route;
  if (!isPermitted(resources, { kind, namespace: metadata.namespace ?? '' }, at.ref)) {
    return unusedReference.notPermitted(at);
  }
  const object = resources.meshEndpoints(meshEndpointsRefOf(at));
  if (!object) return unusedReference.notFound(at);
  const { tailnet: domain } = object.spec;
  const tailnet = oldestTailnet(resources.tailnets(domain));
  if (!tailnet) return unusedReference.tailnetNotFound(at, domain);
  if (!isAllowed(resources, tailnet.spec.allowedNamespaces, at.ref.namespace)) {
    return unusedReference.namespaceNotAllowed(at, tailnet.metadata.name);
  }
  return { object, tailnet };
}

function resolveEndpoint(
  at: RouteBackendRef,
  { object, tailnet }: ReferencedObjects,
  endpoint: MeshEndpoint,
): Candidate | UnusedBackend {
  if (endpoint.externalTarget !== undefined) return unusedEndpoint.externalTarget(at, endpoint);
  const spoken = upstreamFor(endpoint.protocol, at.route.kind);
  if (!spoken) return unusedEndpoint.protocolMismatch(at, endpoint);
  const { protocol } = spoken;
  if (!originatesTls(spoken, endpoint)) return { at, protocol, resolved: { endpoint, object, tailnet } };
  if (endpoint.tls?.caRef) return unusedEndpoint.caReference(at, endpoint);
  const tls = upstreamTlsOf(endpoint, object.spec.tailnet, protocol);
  return { at, protocol, resolved: { endpoint, object, tailnet, tls } };
}

/** The one of several MeshTailnets with the same domain that counts: the oldest, and of equally old ones the first by name. */
function oldestTailnet(tailnets: readonly Kinds['MeshTailnet'][]): Kinds['MeshTailnet'] | undefined {
  return tailnets.reduce<Kinds['MeshTailnet'] | undefined>(
    (best, each) => (best && !isBefore(each, best) ? best : each),
    undefined,
  );
}

function isBefore(a: Kinds['MeshTailnet'], b: Kinds['MeshTailnet']): boolean {
  const [madeA, madeB] = [createdAtMs(a), createdAtMs(b)];
  return madeA === madeB ? a.metadata.name < b.metadata.name : madeA < madeB;
}

/** What has no time, or none that can be read, has yet to be made. */
function createdAtMs({ metadata: { creationTimestamp } }: Kinds['MeshTailnet']): number {
  const time = creationTimestamp === undefined ? NaN : Date.parse(creationTimestamp);
  return Number.isNaN(time) ? Infinity : time;
}

/** An endpoint that traffic may use. */
export type ResolvedEndpoint = {
  readonly endpoint: MeshEndpoint;
  /** The object that it is part of, for its status. */
  readonly object: Kinds['MeshEndpoints'];
  /** The MeshTailnet that leads to it. */
  readonly tailnet: Kinds['MeshTailnet'];
  /** How Envoy speaks TLS with it; without it, none is spoken. */
  readonly tls?: UpstreamTls;
};
