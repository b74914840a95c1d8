import { GATEWAY_GROUP } from '../api/objects/gateway-api.ts';
import { GROUP } from '../api/generated/kinds.ts';
import type { Kinds, MeshEndpoint } from '../api/generated/types.ts';
import { isOverHttp, keyOf } from '../api/key.ts';
import type { Key } from '../api/key.ts';
import { RELAY, relayName } from '../api/names.ts';
import { TLS_BYTES } from '../api/shares.ts';
import type { MissingCa } from '../api/trust.ts';
import { meshEndpointsRefOf } from './backend-refs.ts';
import type { RouteBackendRef } from './backend-refs.ts';
import { poolProblemOf } from './data-path.ts';
import type { Candidate } from './resolve-backend-ref.ts';
import { protocolsFor, routeKindsFor } from './upstream-protocol.ts';
import type { UpstreamProtocol } from './upstream-protocol.ts';

/** Why a backendRef, or an endpoint of the object that it names, gets no traffic. */
export type UnusedReason =
  /** The MeshEndpoints does not exist. */
  | 'BackendNotFound'
  /** The route is in another namespace, and no ReferenceGrant permits the reference. */
  | 'RefNotPermitted'
  /** The backendRef has no port. */
  | 'PortMissing'
  /** No endpoint of the object has the port. */
  | 'PortNotFound'
  /** The kind of route does not support the protocol of the endpoint. */
  | 'ProtocolMismatch'
  /** The rule has another upstream protocol: that of an earlier endpoint, or of a Service or Backend. */
  | 'ProtocolConflict'
  /** Another endpoint of the rule has the same address and port. */
  | 'DuplicateAddress'
  /** No MeshTailnet has the domain of the object. */
  | 'TailnetNotFound'
  /** spec.allowedNamespaces of the MeshTailnet does not select the namespace of the object. */
  | 'NamespaceNotAllowed'
  /** The rule has other backends that cannot be in one rule with MeshEndpoints. */
  | 'MixedBackends'
  /** Another backend of the rule does not resolve, and Envoy Gateway then sends no requests to MeshEndpoints. */
  | 'OtherBackendMissing'
  /** Envoy Gateway does not support the filters of the rule's backends together with MeshEndpoints. */
  | 'NotSupported'
  /** The certificates of tls.caRef do not exist. */
  | 'CertificateNotFound'
  /** tls.ca, or the certificates of tls.caRef, cannot be read. */
  | 'InvalidCertificate'
  /** The TLS settings of the rule are too many or too large for one cluster. */
  | 'TooManyTlsSettings'
  /** With the policy of the rule it would have more priorities than a rule can have. */
  | 'TooManyPriorities'
  /** The MeshTailnet has no proxy, or for UDP no relay. */
  | 'ProxyUnknown'
  /** The proxy of the MeshTailnet is a host name, and EDS takes IP addresses only. */
  | 'ProxyNotAnAddress'
  /** UDP cannot pass the CONNECT proxies of an External pool. */
  | 'DatagramsThroughProxy'
  /** The endpoint has no port on the relays of its MeshTailnet. */
  | 'RelayPortMissing'
  /** The operator has not written the addresses of the endpoint's externalTarget into status.endpoints. */
  | 'ExternalTargetNotResolved'
  /** The endpoint has an address that must get no traffic, such as that of the API server. */
  | 'AddressRefused';

/** A backendRef or endpoint that gets no traffic. */
export type UnusedBackend = {
  readonly reason: UnusedReason;
  /** For users: the field, what is wrong, and the fix. */
  readonly message: string;
  /** The MeshEndpoints of the backendRef. */
  readonly object: Key;
  /** The name of the endpoint; undefined for the whole backendRef. */
  readonly endpoint?: string;
};

/** The reason and the message, as users read them in `explain` and in status. */
export function formatUnused({ reason, message }: UnusedBackend): string {
  return `${reason}: ${message}`;
}

type Endpoints = readonly Pick<MeshEndpoint, 'port'>[];

/** Reasons for which a whole backendRef is not used. */
export const unusedReference = {
  notPermitted: (backendRef: RouteBackendRef) => {
    const { kind, metadata } = backendRef.route;
    const { namespace = '' } = metadata;
    return unused(
      'RefNotPermitted',
      backendRef,
      `no ReferenceGrant lets any ${kind} of namespace ${namespace} refer to ${named(backendRef)}: create one in namespace ${backendRef.ref.namespace}, from group ${GATEWAY_GROUP}, kind ${kind}, namespace ${namespace}, to group ${GROUP}, kind MeshEndpoints`,
    );
  },
  notFound: (backendRef: RouteBackendRef) =>
    unused(
      'BackendNotFound',
      backendRef,
      `${named(backendRef)} does not exist: create it, or correct name and namespace`,
    ),
  portMissing: (backendRef: RouteBackendRef, endpoints: Endpoints) =>
    unused(
      'PortMissing',
      backendRef,
      `port is missing: set it to a port of ${named(backendRef)} (${portsOf(endpoints)})`,
    ),
  portNotFound: (backendRef: RouteBackendRef, endpoints: Endpoints) =>
    unused(
      'PortNotFound',
      backendRef,
      `port ${backendRef.ref.port} is not a port of ${named(backendRef)}: use one that it has (${portsOf(endpoints)})`,
    ),
  tailnetNotFound: (backendRef: RouteBackendRef, domain: string) =>
    unused(
      'TailnetNotFound',
      backendRef,
      `no MeshTailnet has spec.tailnet ${domain}, which is that of ${named(backendRef)}: create one, or correct spec.tailnet of ${named(backendRef)}`,
    ),
  namespaceNotAllowed: (backendRef: RouteBackendRef, tailnet: string) =>
    unused(
      'NamespaceNotAllowed',
      backendRef,
      `spec.allowedNamespaces of MeshTailnet ${tailnet} does not select namespace ${backendRef.ref.namespace}: add the labels that it selects to the namespace, or change the selector`,
    ),
  mixedBackends: (backendRef: RouteBackendRef) =>
    unused(
      'MixedBackends',
      backendRef,
      isOverHttp(backendRef.route.kind)
        ? `the rule has backends that are neither MeshEndpoints, nor Services, nor Backends of Envoy Gateway: move ${named(backendRef)} to a rule of its own, or give the others weight 0`
        : `a ${backendRef.route.kind} cannot mix MeshEndpoints with ${othersThan(backendRef)}: keep one kind of backend, or give the others weight 0`,
    ),
  otherBackendMissing: (backendRef: RouteBackendRef, other: RouteBackendRef) =>
    unused(
      'OtherBackendMissing',
      backendRef,
      `Envoy Gateway sends no requests to ${named(backendRef)} and answers them with 500 or 503, because ${titleOf(other)} at ${other.path} does not exist, may not be referred to, or has no endpoints: correct that backendRef, remove it, or give it weight 0`,
    ),
  backendFilters: (backendRef: RouteBackendRef, other: RouteBackendRef) =>
    unused(
      'NotSupported',
      backendRef,
      `Envoy Gateway sends no requests to ${named(backendRef)}, because ${other.path} has filters: move them to the filters of the rule, or give the backends rules of their own`,
    ),
  overTlsBudget: (backend: BackendPlace, namespace: string, budget: keyof typeof TLS_BYTES) =>
    unused(
      'TooManyTlsSettings',
      backend,
      `${OVER_TLS_BUDGET[budget](namespace)}, and those of this rule are left out, so connections to endpoints of ${named(backend)} with TLS fail: use fewer certificates, or fewer rules with them`,
    ),
  filtersIgnored: (backendRef: RouteBackendRef) =>
    unused(
      'NotSupported',
      backendRef,
      `Envoy Gateway ignores filters of ${named(backendRef)}: move them to the filters of the rule`,
    ),
} as const;

const OVER_TLS_BUDGET = {
  ofNamespace: (namespace: string) =>
    `the TLS settings of the routes in namespace ${namespace}, certificates included, exceed ${TLS_BYTES.ofNamespace / 1e6} MB, the share of a namespace`,
  ofAll: (namespace: string) =>
    `the TLS settings of the routes in all namespaces, certificates included, exceed ${TLS_BYTES.ofAll / 1e6} MB, and those of namespace ${namespace} its equal part of that`,
};

/** Reasons for which one endpoint is not used. */
export const unusedEndpoint = {
  protocolMismatch: (backendRef: RouteBackendRef, endpoint: MeshEndpoint) => {
    const { kind } = backendRef.route;
    const { protocol } = endpoint;
    return unused(
      'ProtocolMismatch',
      backendRef,
      `${kind} does not support protocol ${protocol} of ${namedEndpoint(backendRef, endpoint)}: use ${joined(routeKindsFor(protocol))}, or change the protocol (${kind} supports ${joined(protocolsFor(kind))})`,
      endpoint,
    );
  },
  caMissing: (backendRef: RouteBackendRef, endpoint: MeshEndpoint, { reason, why }: MissingCa) =>
    unused(
      reason,
      backendRef,
      `tls.caRef of ${namedEndpoint(backendRef, endpoint)} cannot be used: ${why}`,
      endpoint,
    ),
  protocolConflict: (candidate: Candidate, first: Candidate) =>
    unusedCandidate(
      'ProtocolConflict',
      candidate,
      `${namedCandidate(candidate)} needs ${candidate.protocol}, but ${namedCandidate(first)}, which comes first, needs ${first.protocol}, and Envoy uses one protocol for all endpoints of a rule: give them rules of their own`,
    ),
  conflictWithOtherBackends: (candidate: Candidate, protocol: UpstreamProtocol) =>
    unusedCandidate(
      'ProtocolConflict',
      candidate,
      `${namedCandidate(candidate)} needs ${candidate.protocol}, but Envoy uses ${protocol} for the backends of the rule that are not MeshEndpoints, and one protocol for all endpoints of a rule: give it a rule of its own`,
    ),
  duplicateAddress: (candidate: Candidate, first: Candidate) =>
    unusedCandidate(
      'DuplicateAddress',
      candidate,
      `${namedCandidate(candidate)} has the same address and port as ${namedCandidate(first)}, which is used: remove one of them`,
    ),
  duplicateTarget: (candidate: Candidate, first: Candidate) =>
    unusedCandidate(
      'DuplicateAddress',
      candidate,
      `${namedCandidate(candidate)} has the same externalTarget as ${namedCandidate(first)}, which is used: remove one of them`,
    ),
  duplicateName: (candidate: Candidate, first: Candidate) =>
    unusedCandidate(
      'DuplicateAddress',
      candidate,
      `${namedCandidate(candidate)} has the same meshFQDN and port as ${namedCandidate(first)}, which is used, and endpoints with TLS are dialled by that name: give each its own meshFQDN, or remove one of them`,
    ),
  addressInTwoTailnets: (candidate: Candidate, other: Candidate) =>
    unusedCandidate(
      'DuplicateAddress',
      candidate,
      `${namedCandidate(candidate)} has the same address and port as ${namedCandidate(other)} in another tailnet, and Envoy keeps one endpoint per address, so neither is used: give them rules of their own`,
    ),
  invalidCertificate: (candidate: Candidate, why: string) =>
    unusedCandidate(
      'InvalidCertificate',
      candidate,
      `tls.ca of ${namedCandidate(candidate)} cannot be read: ${why}: write whole PEM certificates, each from its BEGIN line to its END line, and nothing else`,
    ),
  tooManyTlsBytes: (candidate: Candidate, maxBytes: number) =>
    unusedCandidate(
      'TooManyTlsSettings',
      candidate,
      `with ${namedCandidate(candidate)} the TLS settings of the rule, certificates included, exceed ${maxBytes / 1024} KB: use equal settings or fewer certificates, or give endpoints rules of their own`,
    ),
  tooManyTlsSettings: (candidate: Candidate, max: number) =>
    unusedCandidate(
      'TooManyTlsSettings',
      candidate,
      `with ${namedCandidate(candidate)} the rule has more than ${max} different TLS settings: use equal settings, or give endpoints rules of their own`,
    ),
} as const;

/** Reasons by the policy of a rule. */
export const unusedByPolicy = {
  tooManyPriorities: (backend: BackendPlace, policy: string, max: number) =>
    unused(
      'TooManyPriorities',
      backend,
      `endpoints of ${named(backend)} would be in priority ${max + 1} or later of the rule, and it has ${max} at most: list fewer preferences in MeshRoutePolicy ${policy}, or give endpoints equal priorities`,
    ),
} as const;

/** Reasons for which Envoy cannot reach the endpoints of a backend. */
export const unreachableBackend = {
  datagramsThroughProxy: (backend: BackendPlace, tailnet: Kinds['MeshTailnet']) =>
    unused(
      'DatagramsThroughProxy',
      backend,
      `${named(backend)} has UDP endpoints, and the proxies in spec.pool.addresses of MeshTailnet ${tailnet.metadata.name} carry no datagrams: set spec.pool.mode to Managed, which needs a cluster, or run Envoy on the mesh itself, with data path Direct`,
    ),
  relayPortMissing: (backend: BackendPlace, endpoint: MeshEndpoint, why: string) =>
    unused(
      'RelayPortMissing',
      backend,
      `${namedEndpoint(backend, endpoint)} has no relay port: ${why}`,
      endpoint,
    ),
  notResolved: (backend: BackendPlace, endpoint: MeshEndpoint, why: string) =>
    unused(
      'ExternalTargetNotResolved',
      backend,
      `externalTarget ${endpoint.externalTarget} of ${namedEndpoint(backend, endpoint)} has no addresses: ${why}`,
      endpoint,
    ),
  addressRefused: (backend: BackendPlace, endpoint: MeshEndpoint, why: string) =>
    unused(
      'AddressRefused',
      backend,
      `${namedEndpoint(backend, endpoint)} has an address that must get no traffic: ${why}`,
      endpoint,
    ),
  sameResolvedAddress: (backend: BackendPlace, endpoint: MeshEndpoint, first: MeshEndpoint) =>
    unused(
      'DuplicateAddress',
      backend,
      `externalTarget ${endpoint.externalTarget} of ${namedEndpoint(backend, endpoint)} has only addresses of endpoint ${first.name}, which is used, and Envoy keeps one endpoint per address: remove one of them`,
      endpoint,
    ),
  noRelay: (backend: BackendPlace, tailnet: Kinds['MeshTailnet']) =>
    unused(
      'ProxyUnknown',
      backend,
      `MeshTailnet ${tailnet.metadata.name} of ${named(backend)} has no relay for UDP: ${poolProblemOf(tailnet) ?? `Service ${relayName(tailnet.metadata.name)} has no endpoints: check that its mesh pods are ready and have the container ${RELAY.container}`}`,
    ),
  proxyUnknown: (backend: BackendPlace, tailnet: Kinds['MeshTailnet']) =>
    unused(
      'ProxyUnknown',
      backend,
      `MeshTailnet ${tailnet.metadata.name} of ${named(backend)} has no proxy: ${poolProblemOf(tailnet)}`,
    ),
  proxyNotAnAddress: (backend: BackendPlace, tailnet: string, names: readonly string[]) =>
    unused(
      'ProxyNotAnAddress',
      backend,
      `spec.pool.addresses of MeshTailnet ${tailnet} of ${named(backend)} has host names only (${names.slice(0, MAX_NAMES).join(', ')}), and Envoy needs IP addresses: write IP:port`,
    ),
} as const;

const MAX_NAMES = 3;

type BackendPlace = Pick<RouteBackendRef, 'ref' | 'path'>;

function unused(
  reason: UnusedReason,
  backendRef: BackendPlace,
  text: string,
  endpoint?: Pick<MeshEndpoint, 'name'>,
): UnusedBackend {
  const backend = {
    reason,
    message: `${backendRef.path}: ${text}`,
    object: keyOf(meshEndpointsRefOf(backendRef)),
  };
  return endpoint ? { ...backend, endpoint: endpoint.name } : backend;
}

function unusedCandidate(
  reason: UnusedReason,
  { backendRef, resolved }: Candidate,
  text: string,
): UnusedBackend {
  return unused(reason, backendRef, text, resolved.endpoint);
}

function othersThan({ route: { kind } }: RouteBackendRef): string {
  return kind === 'UDPRoute'
    ? 'other backends'
    : 'other backends than Services, nor with a Service that a BackendTLSPolicy targets';
}

function titleOf({ ref: { kind, namespace, name } }: RouteBackendRef): string {
  return `${kind} ${namespace}/${name}`;
}

function named({ ref: { namespace, name } }: BackendPlace): string {
  return `MeshEndpoints ${namespace}/${name}`;
}

function namedEndpoint(backendRef: BackendPlace, { name }: Pick<MeshEndpoint, 'name'>): string {
  return `endpoint ${name} of ${named(backendRef)}`;
}

function namedCandidate({ backendRef, resolved }: Candidate): string {
  return namedEndpoint(backendRef, resolved.endpoint);
}

function joined(words: readonly string[]): string {
  return words.join(' or ');
}

/** An object with tagSelectors may have found no device. */
function portsOf(endpoints: Endpoints): string {
  const ports = [...new Set(endpoints.map(({ port }) => port))].sort((a, b) => a - b);
  if (ports.length === 0) return 'it has no endpoints';
  const more = ports.length > MAX_PORTS ? ', ...' : '';
  return `it has ${ports.slice(0, MAX_PORTS).join(', ')}${more}`;
}

const MAX_PORTS = 10;
