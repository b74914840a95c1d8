import type { Kinds, MeshEndpoint } from '../api/generated/types.ts';
import type { Declared } from './traffic-resources.ts';
import { isAllowed, isPermitted } from './permissions.ts';
import { objectOf } from './backend-refs.ts';
import type { Reference } from './backend-refs.ts';
import type { Speech, Unused, UsableEndpoint } from './rule.ts';
import { isOverTls, spokenTo } from './upstream-protocol.ts';
import { tlsOf } from './upstream-tls.ts';
import { refuseEndpoint, refuseReference } from './unused.ts';

/** An endpoint that can be used as far as it alone is concerned. */
export type Candidate = {
  readonly at: Reference;
  readonly usable: UsableEndpoint;
  readonly speech: Speech;
};

/** What is left of some candidates, and why the others are not. */
export type Sifted = { readonly kept: readonly Candidate[]; readonly unused: readonly Unused[] };

type Source = { readonly object: Kinds['MeshEndpoints']; readonly tailnet: Kinds['MeshTailnet'] };

/** The endpoints that a reference means, each judged by itself; one without weight means none. */
export function candidatesOf(declared: Declared, at: Reference): Sifted {
  if (at.ref.weight === 0) return { kept: [], unused: [] };
  const source = sourceOf(declared, at);
  if ('reason' in source) return { kept: [], unused: [source] };
  const endpoints = source.object.spec.endpoints ?? [];
  const { port } = at.ref;
  if (port === undefined) return { kept: [], unused: [refuseReference.portMissing(at, endpoints)] };
  const meant = endpoints.filter(endpoint => endpoint.port === port);
  if (meant.length === 0) return { kept: [], unused: [refuseReference.portNotFound(at, endpoints)] };
  const kept: Candidate[] = [];
  const unused: Unused[] = [];
  for (const endpoint of meant) {
    const judged = judge(at, source, endpoint);
    if ('reason' in judged) unused.push(judged);
    else kept.push(judged);
  }
  return { kept, unused };
}

/** The object that a reference is to and the MeshTailnet that leads there, if both may be used. */
function sourceOf(declared: Declared, at: Reference): Source | Unused {
  const { kind, metadata } = at.route;
  if (!isPermitted(declared, { kind, namespace: metadata.namespace ?? '' }, at.ref)) {
    return refuseReference.notPermitted(at);
  }
  const object = declared.meshEndpoints(objectOf(at));
  if (!object) return refuseReference.notFound(at);
  const { tailnet: domain } = object.spec;
  const tailnet = chosenTailnet(declared.tailnets(domain));
  if (!tailnet) return refuseReference.tailnetNotFound(at, domain);
  if (!isAllowed(declared, tailnet.spec.allowedNamespaces, at.ref.namespace)) {
    return refuseReference.namespaceNotAllowed(at, tailnet.metadata.name);
  }
  return { object, tailnet };
}

function judge(at: Reference, { object, tailnet }: Source, endpoint: MeshEndpoint): Candidate | Unused {
  if (endpoint.externalTarget !== undefined) return refuseEndpoint.externalTarget(at, endpoint);
  const spoken = spokenTo(endpoint.protocol, at.route.kind);
  if (!spoken) return refuseEndpoint.protocolMismatch(at, endpoint);
  const { speech } = spoken;
  if (!isOverTls(spoken, endpoint)) return { at, speech, usable: { endpoint, object, tailnet } };
  if (endpoint.tls?.caRef) return refuseEndpoint.caReference(at, endpoint);
  const tls = tlsOf(endpoint, object.spec.tailnet, speech);
  return { at, speech, usable: { endpoint, object, tailnet, tls } };
}

/** The one of several MeshTailnets with the same domain that counts: the oldest, and of equally old ones the first by name. */
function chosenTailnet(tailnets: readonly Kinds['MeshTailnet'][]): Kinds['MeshTailnet'] | undefined {
  return tailnets.reduce<Kinds['MeshTailnet'] | undefined>(
    (best, each) => (best && !isBefore(each, best) ? best : each),
    undefined,
  );
}

function isBefore(a: Kinds['MeshTailnet'], b: Kinds['MeshTailnet']): boolean {
  const [madeA, madeB] = [madeAt(a), madeAt(b)];
  return madeA === madeB ? a.metadata.name < b.metadata.name : madeA < madeB;
}

/** What has no time, or none that can be read, has yet to be made. */
function madeAt({ metadata: { creationTimestamp } }: Kinds['MeshTailnet']): number {
  const time = creationTimestamp === undefined ? NaN : Date.parse(creationTimestamp);
  return Number.isNaN(time) ? Infinity : time;
}
