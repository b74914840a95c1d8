import type { Kinds, MeshEndpoint } from '../api/generated/types.ts';
import type { BackendRef } from '../api/gateway-api.ts';
import type { Key } from '../api/key.ts';
import type { EnvoyClusterName } from './envoy-cluster-name.ts';
import type { UpstreamTls } from './envoy-cluster-settings.ts';
import type { OtherBackend } from './other-backends.ts';

/** What Envoy says to the endpoints of a cluster, below which there may be TLS. */
export type UpstreamProtocol = 'HTTP/1.1' | 'HTTP/2' | 'TCP' | 'UDP';

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

/** One reference of a rule to a MeshEndpoints. */
export type ResolvedBackend = {
  /** Its position among all references of the rule, by which Envoy Gateway names its locality. */
  readonly index: number;
  readonly ref: BackendRef;
  /** Where the reference stands in the route, such as spec.rules[0].backendRefs[1]. */
  readonly path: string;
  readonly endpoints: readonly ResolvedEndpoint[];
};

/** What the rule behind a cluster means: where its traffic may go, and where it may not and why. */
export type ResolvedRule = {
  readonly cluster: EnvoyClusterName;
  /** How Envoy speaks to all endpoints; of a rule without any that can be used, what its kind of route would take. */
  readonly protocol: UpstreamProtocol;
  /** Whether the rule has backends that are not ours, with a weight above 0. */
  readonly isMixed: boolean;
  /** Those of them that we serve beside ours. */
  readonly otherBackends: readonly OtherBackend[];
  /** In the order of the references; those without usable endpoints too. */
  readonly backends: readonly ResolvedBackend[];
  readonly unused: readonly UnusedBackend[];
};
