import { GATEWAY_GROUP } from '../api/objects/gateway-api.ts';
import type { BackendRef } from '../api/objects/gateway-api.ts';
import { GROUP } from '../api/generated/kinds.ts';
import type { Kinds, MeshEndpoint } from '../api/generated/types.ts';
import { isOverHttp, keyOf } from '../api/key.ts';
import type { Key } from '../api/key.ts';
import { RELAY, relayName } from '../api/names.ts';
import { within } from '../api/problem.ts';
import type { Problem, Why } from '../api/problem.ts';
import type { UnusedReason } from '../api/reasons.ts';
import { TLS_BYTES } from '../api/shares.ts';
import { withArticle } from '../api/text.ts';
import type { MissingCa } from '../api/trust.ts';
import { meshEndpointsRefOf } from './backend-refs.ts';
import type { RouteBackendRef } from './backend-refs.ts';
import { poolProblemOf } from './data-path.ts';
import { namespaceNotAllowed } from './permissions.ts';
import type { Candidate } from './resolve-backend-ref.ts';
import { protocolsFor, routeKindsFor } from './upstream-protocol.ts';
import type { UpstreamProtocol } from './upstream-protocol.ts';

/** A backendRef or endpoint that gets no traffic: a problem at the backendRef of the route. */
export type UnusedBackend = Problem<UnusedReason> & {
  /** The MeshEndpoints of the backendRef. */
  readonly object: Key;
};

type Endpoints = readonly Pick<MeshEndpoint, 'port'>[];

/** Reasons for which a whole backendRef is not used. */
export const unusedReference = {
  notPermitted: (backendRef: RouteBackendRef) => {
    const { kind, metadata } = backendRef.route;
    const { namespace = '' } = metadata;
    return unused(backendRef, {
      reason: 'RefNotPermitted',
      text: `no ReferenceGrant lets any ${kind} of namespace ${namespace} refer to ${named(backendRef)}`,
      fix: `create one in namespace ${backendRef.ref.namespace}, from group ${GATEWAY_GROUP}, kind ${kind}, namespace ${namespace}, to group ${GROUP}, kind MeshEndpoints`,
      example: grantFor(backendRef),
    });
  },
  notFound: (backendRef: RouteBackendRef) =>
    unused(backendRef, {
      reason: 'BackendNotFound',
      text: `${named(backendRef)} does not exist`,
      fix: 'create it, or correct name and namespace',
    }),
  portMissing: (backendRef: RouteBackendRef, endpoints: Endpoints) =>
    unused(backendRef, {
      reason: 'PortMissing',
      text: 'port is missing',
      fix: `set it to a port of ${named(backendRef)} (${portsOf(endpoints)})`,
    }),
  portNotFound: (backendRef: RouteBackendRef, endpoints: Endpoints) =>
    unused(backendRef, {
      reason: 'PortNotFound',
      text: `port ${backendRef.ref.port} is not a port of ${named(backendRef)}`,
      fix: `use one that it has (${portsOf(endpoints)})`,
    }),
  tailnetNotFound: (backendRef: RouteBackendRef, domain: string) =>
    unused(backendRef, {
      reason: 'TailnetNotFound',
      text: `no MeshTailnet has spec.tailnet ${domain}, which is that of ${named(backendRef)}`,
      fix: `create one, or correct spec.tailnet of ${named(backendRef)}`,
    }),
  namespaceNotAllowed: (backendRef: RouteBackendRef, tailnet: string) =>
    unused(backendRef, namespaceNotAllowed(tailnet, backendRef.ref.namespace)),
  mixedBackends: (backendRef: RouteBackendRef) =>
    unused(
      backendRef,
      isOverHttp(backendRef.route.kind)
        ? {
            reason: 'MixedBackends',
            text: 'the rule has backends that are neither MeshEndpoints, nor Services, ServiceImports, or Backends of Envoy Gateway',
            fix: `move ${named(backendRef)} to a rule of its own, or give the others weight 0`,
          }
        : {
            reason: 'MixedBackends',
            text: `${withArticle(backendRef.route.kind)} cannot mix MeshEndpoints with ${othersThan(backendRef)}`,
            fix: 'keep one kind of backend, or give the others weight 0',
          },
    ),
  overTlsBudget: (backend: Backend, namespace: string, budget: keyof typeof TLS_BYTES) =>
    unused(backend, {
      reason: 'TooManyTlsSettings',
      text: `${OVER_TLS_BUDGET[budget](namespace)}, and those of this rule are left out, so connections to endpoints of ${named(backend)} with TLS fail`,
      fix: 'use fewer certificates, or fewer rules with them',
    }),
  mirrored: (backend: Backend, { namespace, name }: BackendRef) =>
    unused(backend, {
      reason: 'NotSupported',
      text: `Envoy Gateway answers all requests of the rule with 500, because a filter RequestMirror names MeshEndpoints ${namespace}/${name}`,
      fix: 'mirror to a Service, or remove the filter',
    }),
  filterIgnored: (backendRef: RouteBackendRef, type: string) =>
    unused(backendRef, {
      reason: 'NotSupported',
      mattersAs: 'warning',
      text: `Envoy ignores filter ${type} of ${named(backendRef)}: only RequestHeaderModifier and ResponseHeaderModifier are applied to MeshEndpoints, without Host, and with values that a header can have`,
      fix: 'move it to the filters of the rule',
    }),
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
    return unused(backendRef, {
      reason: 'ProtocolMismatch',
      text: `${kind} does not support protocol ${protocol} of ${namedEndpoint(backendRef, endpoint)}`,
      fix: `use ${joined(routeKindsFor(protocol))}, or change the protocol (${kind} supports ${joined(protocolsFor(kind))})`,
      endpoint: endpoint.name,
    });
  },
  caMissing: (backendRef: RouteBackendRef, endpoint: MeshEndpoint, { reason, why }: MissingCa) =>
    unused(backendRef, {
      reason,
      ...within(`tls.caRef of ${namedEndpoint(backendRef, endpoint)} cannot be used`, why),
      endpoint: endpoint.name,
    }),
  protocolConflict: (candidate: Candidate, first: Candidate) =>
    unusedCandidate(candidate, {
      reason: 'ProtocolConflict',
      text: `${namedCandidate(candidate)} needs ${candidate.protocol}, but ${namedCandidate(first)}, which comes first, needs ${first.protocol}, and Envoy uses one protocol for all endpoints of a rule`,
      fix: 'give them rules of their own',
    }),
  conflictWithOtherBackends: (candidate: Candidate, protocol: UpstreamProtocol) =>
    unusedCandidate(candidate, {
      reason: 'ProtocolConflict',
      text: `${namedCandidate(candidate)} needs ${candidate.protocol}, but Envoy uses ${protocol} for the backends of the rule that are not MeshEndpoints, and one protocol for all endpoints of a rule`,
      fix: 'give it a rule of its own',
    }),
  duplicateAddress: (candidate: Candidate, first: Candidate) =>
    unusedCandidate(candidate, {
      reason: 'DuplicateAddress',
      text: `${namedCandidate(candidate)} has the same address and port as ${namedCandidate(first)}, which is used`,
      fix: 'remove one of them',
    }),
  duplicateTarget: (candidate: Candidate, first: Candidate) =>
    unusedCandidate(candidate, {
      reason: 'DuplicateAddress',
      text: `${namedCandidate(candidate)} has the same externalTarget as ${namedCandidate(first)}, which is used`,
      fix: 'remove one of them',
    }),
  duplicateName: (candidate: Candidate, first: Candidate) =>
    unusedCandidate(candidate, {
      reason: 'DuplicateAddress',
      text: `${namedCandidate(candidate)} has the same meshFQDN and port as ${namedCandidate(first)}, which is used, and endpoints with TLS are dialled by that name`,
      fix: 'give each its own meshFQDN, or remove one of them',
    }),
  addressInTwoTailnets: (candidate: Candidate, other: Candidate) =>
    unusedCandidate(candidate, {
      reason: 'DuplicateAddress',
      text: `${namedCandidate(candidate)} has the same address and port as ${namedCandidate(other)} in another tailnet, and Envoy keeps one endpoint per address, so neither is used`,
      fix: 'give them rules of their own',
    }),
  invalidCertificate: (candidate: Candidate, why: string) =>
    unusedCandidate(candidate, {
      reason: 'InvalidCertificate',
      text: `tls.ca of ${namedCandidate(candidate)} cannot be read: ${why}`,
      fix: 'write whole PEM certificates, each from its BEGIN line to its END line, and nothing else',
    }),
  tooManyTlsBytes: (candidate: Candidate, maxBytes: number) =>
    unusedCandidate(candidate, {
      reason: 'TooManyTlsSettings',
      text: `with ${namedCandidate(candidate)} the TLS settings of the rule, certificates included, exceed ${maxBytes / 1024} KB`,
      fix: 'use equal settings or fewer certificates, or give endpoints rules of their own',
    }),
  tooManyTlsSettings: (candidate: Candidate, max: number) =>
    unusedCandidate(candidate, {
      reason: 'TooManyTlsSettings',
      text: `with ${namedCandidate(candidate)} the rule has more than ${max} different TLS settings`,
      fix: 'use equal settings, or give endpoints rules of their own',
    }),
} as const;

/** Reasons by the policy of a rule. */
export const unusedByPolicy = {
  tooManyPriorities: (backend: Backend, policy: string, max: number) =>
    unused(backend, {
      reason: 'TooManyPriorities',
      text: `endpoints of ${named(backend)} would be in priority ${max + 1} or later of the rule, and it has ${max} at most`,
      fix: `list fewer preferences in MeshRoutePolicy ${policy}, or give endpoints equal priorities`,
    }),
} as const;

/** Reasons for which Envoy cannot reach the endpoints of a backend. */
export const unreachableBackend = {
  datagramsThroughProxy: (backend: Backend, tailnet: Kinds['MeshTailnet']) =>
    unused(backend, {
      reason: 'DatagramsThroughProxy',
      text: `${named(backend)} has UDP endpoints, and the proxies in spec.pool.addresses of MeshTailnet ${tailnet.metadata.name} carry no datagrams`,
      fix: 'set spec.pool.mode to Managed, which needs a cluster, or run Envoy on the mesh itself, with data path Direct',
    }),
  relayPortMissing: (backend: Backend, endpoint: MeshEndpoint, why: string) =>
    unused(backend, {
      reason: 'RelayPortMissing',
      text: `${namedEndpoint(backend, endpoint)} has no relay port: ${why}`,
      endpoint: endpoint.name,
    }),
  notResolved: (backend: Backend, endpoint: MeshEndpoint, why: Why) =>
    unused(backend, {
      reason: 'ExternalTargetNotResolved',
      ...within(
        `externalTarget ${endpoint.externalTarget} of ${namedEndpoint(backend, endpoint)} has no addresses`,
        why,
      ),
      endpoint: endpoint.name,
    }),
  addressRefused: (backend: Backend, endpoint: MeshEndpoint, why: Why) =>
    unused(backend, {
      reason: 'AddressRefused',
      ...within(`${namedEndpoint(backend, endpoint)} has an address that must get no traffic`, why),
      endpoint: endpoint.name,
    }),
  sameResolvedAddress: (backend: Backend, endpoint: MeshEndpoint, first: MeshEndpoint) =>
    unused(backend, {
      reason: 'DuplicateAddress',
      text: `externalTarget ${endpoint.externalTarget} of ${namedEndpoint(backend, endpoint)} has only addresses of endpoint ${first.name}, which is used, and Envoy keeps one endpoint per address`,
      fix: 'remove one of them',
      endpoint: endpoint.name,
    }),
  noRelay: (backend: Backend, tailnet: Kinds['MeshTailnet']) =>
    unused(backend, {
      reason: 'ProxyUnknown',
      ...within(
        `MeshTailnet ${tailnet.metadata.name} of ${named(backend)} has no relay for UDP`,
        poolProblemOf(tailnet) ?? {
          text: `Service ${relayName(tailnet.metadata.name)} has no endpoints`,
          fix: `check that its mesh pods are ready and have the container ${RELAY.container}`,
        },
      ),
    }),
  proxyUnknown: (backend: Backend, tailnet: Kinds['MeshTailnet']) =>
    unused(backend, {
      reason: 'ProxyUnknown',
      ...within(
        `MeshTailnet ${tailnet.metadata.name} of ${named(backend)} has no proxy`,
        poolProblemOf(tailnet) ?? { text: '' },
      ),
    }),
  proxyNotAnAddress: (backend: Backend, tailnet: string, names: readonly string[]) =>
    unused(backend, {
      reason: 'ProxyNotAnAddress',
      text: `spec.pool.addresses of MeshTailnet ${tailnet} of ${named(backend)} has host names only (${names.slice(0, MAX_NAMES).join(', ')}), and Envoy needs IP addresses`,
      fix: 'write IP:port',
    }),
} as const;

const MAX_NAMES = 3;

type Backend = Pick<RouteBackendRef, 'ref' | 'place'>;

function unused(
  backend: Backend,
  problem: Omit<Problem<UnusedReason>, keyof RouteBackendRef['place']>,
): UnusedBackend {
  return { ...problem, ...backend.place, object: keyOf(meshEndpointsRefOf(backend)) };
}

function unusedCandidate(
  { backendRef, resolved }: Candidate,
  problem: Parameters<typeof unused>[1],
): UnusedBackend {
  return unused(backendRef, { ...problem, endpoint: resolved.endpoint.name });
}

/** The ReferenceGrant that a reference lacks. */
function grantFor({ route: { kind, metadata }, ref }: RouteBackendRef): string {
  return `apiVersion: ${GATEWAY_GROUP}/v1beta1
kind: ReferenceGrant
metadata:
  name: ${ref.name}
  namespace: ${ref.namespace}
spec:
  from:
    - group: ${GATEWAY_GROUP}
      kind: ${kind}
      namespace: ${metadata.namespace ?? ''}
  to:
    - group: ${GROUP}
      kind: MeshEndpoints
      name: ${ref.name}
`;
}

function othersThan({ route: { kind } }: RouteBackendRef): string {
  return kind === 'UDPRoute'
    ? 'other backends'
    : 'other backends than Services, nor with a Service that a BackendTLSPolicy targets';
}

function named({ ref: { namespace, name } }: Backend): string {
  return `MeshEndpoints ${namespace}/${name}`;
}

function namedEndpoint(backendRef: Backend, { name }: Pick<MeshEndpoint, 'name'>): string {
  return `endpoint ${name} of ${named(backendRef)}`;
}

function namedCandidate({ backendRef, resolved }: Candidate): string {
  return namedEndpoint(backendRef, resolved.endpoint);
}

function joined(words: readonly string[]): string {
  return [words.slice(0, -1).join(', '), ...words.slice(-1)].filter(part => part !== '').join(' or ');
}

/** An object with tagSelectors may have found no device. */
function portsOf(endpoints: Endpoints): string {
  const ports = [...new Set(endpoints.map(({ port }) => port))].sort((a, b) => a - b);
  if (ports.length === 0) return 'it has no endpoints';
  const more = ports.length > MAX_PORTS ? ', ...' : '';
  return `it has ${ports.slice(0, MAX_PORTS).join(', ')}${more}`;
}

const MAX_PORTS = 10;
