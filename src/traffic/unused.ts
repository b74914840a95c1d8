import { protocolsFor, routeKindsFor } from './upstream-protocol.ts';
import type { UpstreamProtocol } from './upstream-protocol.ts';
import type { Kinds, MeshEndpoint } from '../api/generated/types.ts';
import { keyOf } from '../api/key.ts';
import type { Key } from '../api/key.ts';
import type { ResolvedBackend } from './resolve-route.ts';
import { GATEWAY_GROUP } from '../api/gateway-api.ts';
import { GROUP } from '../api/generated/kinds.ts';
import type { Candidate } from './resolve-backend-ref.ts';
import { meshEndpointsRefOf } from './backend-refs.ts';
import type { RouteBackendRef } from './backend-refs.ts';

type Endpoints = readonly Pick<MeshEndpoint, 'port'>[];

/** What is said where a reference as a whole gets no traffic. */
export const unusedReference = {
  notPermitted: (at: RouteBackendRef) => {
    const { kind, metadata } = at.route;
    const { namespace = '' } = metadata;
    return unused(
      'RefNotPermitted',
      at,
      `no ReferenceGrant lets any ${kind} of namespace ${namespace} refer to ${named(at)}: create one in namespace ${at.ref.namespace}, from group ${GATEWAY_GROUP}, kind ${kind}, namespace ${namespace}, to group ${GROUP}, kind MeshEndpoints`,
    );
  },
  notFound: (at: RouteBackendRef) =>
    unused('BackendNotFound', at, `${named(at)} is not there: create it, or correct name and namespace`),
  portMissing: (at: RouteBackendRef, endpoints: Endpoints) =>
    unused('PortMissing', at, `port is missing: name a port of ${named(at)} (${portsOf(endpoints)})`),
  portNotFound: (at: RouteBackendRef, endpoints: Endpoints) =>
    unused(
      'PortNotFound',
      at,
      `port ${at.ref.port} is not a port of ${named(at)}: name one that it has (${portsOf(endpoints)})`,
    ),
  tailnetNotFound: (at: RouteBackendRef, domain: string) =>
    unused(
      'TailnetNotFound',
      at,
      `${named(at)} is on tailnet ${domain}, which no MeshTailnet leads to: create one with spec.tailnet ${domain}, or correct spec.tailnet of ${named(at)}`,
    ),
  namespaceNotAllowed: (at: RouteBackendRef, tailnet: string) =>
    unused(
      'NamespaceNotAllowed',
      at,
      `MeshTailnet ${tailnet} does not let namespace ${at.ref.namespace} use it: give the namespace the labels that spec.allowedNamespaces of the MeshTailnet selects, or change what it selects`,
    ),
  mixedBackends: (at: RouteBackendRef) =>
    unused(
      'MixedBackends',
      at,
      isOverHttp(at)
        ? `the rule has backends that are neither MeshEndpoints, nor Services, nor Backends of Envoy Gateway: give ${named(at)} a rule of its own, or give the others weight 0`
        : `a ${at.route.kind} cannot mix MeshEndpoints with other backends: keep one kind of backend, or give the others weight 0`,
    ),
  otherBackendMissing: (at: RouteBackendRef, other: RouteBackendRef) =>
    unused(
      'OtherBackendMissing',
      at,
      `Envoy Gateway sends nothing to ${named(at)} and fails the requests with 500 or 503, because ${titleOf(other)} at ${other.path} does not exist, may not be referred to, or has no endpoints: correct that reference, or remove it or give it weight 0`,
    ),
  backendFilters: (at: RouteBackendRef, other: RouteBackendRef) =>
    unused(
      'NotSupported',
      at,
      `Envoy Gateway sends nothing to ${named(at)}, because ${other.path} has filters of its own: put them among the filters of the rule, or give the backends rules of their own`,
    ),
} as const;

/** What is said where one endpoint gets no traffic. */
export const unusedEndpoint = {
  protocolMismatch: (at: RouteBackendRef, endpoint: MeshEndpoint) => {
    const { kind } = at.route;
    const { protocol } = endpoint;
    return unused(
      'ProtocolMismatch',
      at,
      `${kind} does not go with protocol ${protocol} of ${namedEndpoint(at, endpoint)}: use ${listed(routeKindsFor(protocol))}, or change the protocol (${kind} goes with ${listed(protocolsFor(kind))})`,
      endpoint,
    );
  },
  externalTarget: (at: RouteBackendRef, endpoint: MeshEndpoint) =>
    unused(
      'NotSupported',
      at,
      `externalTarget of ${namedEndpoint(at, endpoint)} is not supported yet: refer to the service itself`,
      endpoint,
    ),
  caReference: (at: RouteBackendRef, endpoint: MeshEndpoint) =>
    unused(
      'NotSupported',
      at,
      `tls.caRef of ${namedEndpoint(at, endpoint)} is not supported yet: give the certificates themselves under tls.ca`,
      endpoint,
    ),
  protocolConflict: (candidate: Candidate, first: Candidate) =>
    unusedCandidate(
      'ProtocolConflict',
      candidate,
      `${namedCandidate(candidate)} takes ${candidate.protocol}, but ${namedCandidate(first)} comes first and takes ${first.protocol}, and Envoy speaks one way only in a rule: give them rules of their own`,
    ),
  conflictWithOthers: (candidate: Candidate, protocol: UpstreamProtocol) =>
    unusedCandidate(
      'ProtocolConflict',
      candidate,
      `${namedCandidate(candidate)} takes ${candidate.protocol}, but the backends of the rule that are no MeshEndpoints are spoken to in ${protocol}, and Envoy speaks one way only in a rule: give it a rule of its own`,
    ),
  duplicateAddress: (candidate: Candidate, first: Candidate) =>
    unusedCandidate(
      'DuplicateAddress',
      candidate,
      `${namedCandidate(candidate)} has the same address and port as ${namedCandidate(first)}, which is used: remove one of them`,
    ),
  duplicateName: (candidate: Candidate, first: Candidate) =>
    unusedCandidate(
      'DuplicateAddress',
      candidate,
      `${namedCandidate(candidate)} has the same meshFQDN and port as ${namedCandidate(first)}, which is used, and TLS reaches both by that name: give each its own meshFQDN, or remove one of them`,
    ),
  addressInTwoTailnets: (candidate: Candidate, other: Candidate) =>
    unusedCandidate(
      'DuplicateAddress',
      candidate,
      `${namedCandidate(candidate)} has the same address and port as ${namedCandidate(other)} in another tailnet, and Envoy cannot tell them apart: give them rules of their own; until then neither is used`,
    ),
  invalidCertificate: (candidate: Candidate, why: string) =>
    unusedCandidate(
      'InvalidCertificate',
      candidate,
      `tls.ca of ${namedCandidate(candidate)} cannot be read: ${why}: give whole certificates as PEM, each from its BEGIN line to its END line, and nothing else`,
    ),
  tooManyTlsBytes: (candidate: Candidate, most: number) =>
    unusedCandidate(
      'TooManyTlsSettings',
      candidate,
      `TLS settings of ${namedCandidate(candidate)} would bring those of the rule, with their certificates, to more than ${most / 1024} KB, which is the most that it can have: use the same settings, fewer certificates, or rules of their own`,
    ),
  tooManyTlsSettings: (candidate: Candidate, most: number) =>
    unusedCandidate(
      'TooManyTlsSettings',
      candidate,
      `${namedCandidate(candidate)} has TLS settings of its own, and ${most} others are in the rule already, which is the most that it can have: use the same settings, or rules of their own`,
    ),
} as const;

/** What is said where there is no way to the endpoints of a backend. */
export const unusedBackend = {
  datagramsThroughProxy: (backend: ResolvedBackend) =>
    unused(
      'DatagramsThroughProxy',
      backend,
      `${named(backend)} has UDP endpoints, which are not reached through a proxy yet: use an Envoy that is on the mesh itself, with data path Direct`,
    ),
  proxyUnknown: (backend: ResolvedBackend, { metadata, spec }: Kinds['MeshTailnet']) =>
    unused(
      'ProxyUnknown',
      backend,
      `MeshTailnet ${metadata.name}, by which ${named(backend)} is reached, has no proxy yet: ${WHERE_PROXIES_COME_FROM[spec.pool.mode]}`,
    ),
  proxyNotAnAddress: (backend: ResolvedBackend, tailnet: string, names: readonly string[]) =>
    unused(
      'ProxyNotAnAddress',
      backend,
      `MeshTailnet ${tailnet}, by which ${named(backend)} is reached, has names for proxies only (${names.slice(0, MOST_NAMES).join(', ')}), and Envoy needs an address: write IP:port`,
    ),
} as const;

const WHERE_PROXIES_COME_FROM = {
  Managed:
    'its mesh pods are not there; its condition PoolReady says why. Where nobody runs mesh pods, set spec.pool.mode to External, with the addresses of your own proxies',
  External: 'list some under spec.pool.addresses',
} as const;

const MOST_NAMES = 3;

/** What a backend has of the reference to it. */
type Placed = Pick<RouteBackendRef, 'ref' | 'path'>;

function unused(
  reason: UnusedReason,
  at: Placed,
  text: string,
  endpoint?: Pick<MeshEndpoint, 'name'>,
): UnusedBackend {
  const unused = { reason, message: `${at.path}: ${text}`, object: keyOf(meshEndpointsRefOf(at)) };
  return endpoint ? { ...unused, endpoint: endpoint.name } : unused;
}

function unusedCandidate(
  reason: UnusedReason,
  { at, resolved: usable }: Candidate,
  text: string,
): UnusedBackend {
  return unused(reason, at, text, usable.endpoint);
}

function isOverHttp({ route: { kind } }: RouteBackendRef): boolean {
  return kind === 'HTTPRoute' || kind === 'GRPCRoute';
}

function titleOf({ ref: { kind, namespace, name } }: RouteBackendRef): string {
  return `${kind} ${namespace}/${name}`;
}

function named({ ref: { namespace, name } }: Placed): string {
  return `MeshEndpoints ${namespace}/${name}`;
}

function namedEndpoint(at: Placed, { name }: Pick<MeshEndpoint, 'name'>): string {
  return `endpoint ${name} of ${named(at)}`;
}

function namedCandidate({ at, resolved: usable }: Candidate): string {
  return namedEndpoint(at, usable.endpoint);
}

function listed(words: readonly string[]): string {
  return words.join(' or ');
}

/** Discovered endpoints are not used yet, so that an object may have none. */
function portsOf(endpoints: Endpoints): string {
  const ports = [...new Set(endpoints.map(({ port }) => port))].sort((a, b) => a - b);
  if (ports.length === 0) return 'it lists no endpoints';
  const more = ports.length > MOST_PORTS ? ', ...' : '';
  return `it has ${ports.slice(0, MOST_PORTS).join(', ')}${more}`;
}

const MOST_PORTS = 10;

/** Why a reference, or an endpoint of the object that it names, gets no traffic. */
export type UnusedReason =
  /** The object is not declared. */
  | 'BackendNotFound'
  /** The route lives in another namespace, and no ReferenceGrant lets it refer to this one. */
  | 'RefNotPermitted'
  /** The reference names no port. */
  | 'PortMissing'
  /** No endpoint of the object has the port. */
  | 'PortNotFound'
  /** The kind of the route does not go with the protocol of the endpoint. */
  | 'ProtocolMismatch'
  /** Envoy can speak one way only to all endpoints of a cluster, and an earlier one, or one of others, decided which. */
  | 'ProtocolConflict'
  /** Another endpoint of the rule has the same address and port. */
  | 'DuplicateAddress'
  /** No MeshTailnet has the domain. */
  | 'TailnetNotFound'
  /** The MeshTailnet does not let this namespace use it. */
  | 'NamespaceNotAllowed'
  /** The rule has other backends with which MeshEndpoints cannot share one. */
  | 'MixedBackends'
  /** Another backend of the rule does not resolve, and Envoy Gateway then sends nothing to ours. */
  | 'OtherBackendMissing'
  /** What the endpoint asks for is not there yet, such as a CA from a ConfigMap. */
  | 'NotSupported'
  /** The certificates that the endpoint is to be trusted by cannot be read. */
  | 'InvalidCertificate'
  /** More different TLS settings than one cluster can have, or bigger ones. */
  | 'TooManyTlsSettings'
  /** The MeshTailnet has no proxy yet, and nothing is ever dialled around the mesh. */
  | 'ProxyUnknown'
  /** The proxy of the MeshTailnet is a name, and Envoy can be told an address only. */
  | 'ProxyNotAnAddress'
  /** Datagrams cannot pass a proxy. */
  | 'DatagramsThroughProxy';

/** A reference or endpoint that gets no traffic, with what to do about it. */
export type UnusedBackend = {
  readonly reason: UnusedReason;
  /** For people: what is wrong, where, and the way out. */
  readonly message: string;
  /** The MeshEndpoints that is referred to. */
  readonly object: Key;
  /** Which of its endpoints, where only that one is meant. */
  readonly endpoint?: string;
};
