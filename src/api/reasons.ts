/** How much a problem matters: what it is about does not work, may not, or does; or that is not known. */
export type Severity = 'error' | 'warning' | 'note' | 'unknown';

type Severities = Readonly<Record<string, Severity>>;

/** Why a backendRef, or an endpoint of the object that it names, gets no traffic. */
const UNUSED = {
  /** The object does not exist. */
  BackendNotFound: 'error',
  /** The reference is to another namespace, and no ReferenceGrant permits it. */
  RefNotPermitted: 'error',
  /** The backendRef has no port. */
  PortMissing: 'error',
  /** No endpoint of the object has the port. */
  PortNotFound: 'error',
  /** The kind of route does not support the protocol of the endpoint. */
  ProtocolMismatch: 'error',
  /** The rule has another upstream protocol: that of an earlier endpoint, or of a Service or Backend. */
  ProtocolConflict: 'error',
  /** Another endpoint of the rule has the same address and port. */
  DuplicateAddress: 'error',
  /** No MeshTailnet has the domain of the object. */
  TailnetNotFound: 'error',
  /** spec.allowedNamespaces of the MeshTailnet does not select the namespace of the object. */
  NamespaceNotAllowed: 'error',
  /** The rule has other backends that cannot be in one rule with MeshEndpoints. */
  MixedBackends: 'error',
  /** Another backend of the rule does not resolve, and Envoy Gateway then sends no requests to MeshEndpoints. */
  OtherBackendMissing: 'error',
  /** Envoy Gateway does not support a setting together with MeshEndpoints. */
  NotSupported: 'error',
  /** The certificates of tls.caRef do not exist. */
  CertificateNotFound: 'error',
  /** tls.ca, or the certificates of tls.caRef, cannot be read. */
  InvalidCertificate: 'error',
  /** The TLS settings of the rule are too many or too large for one cluster. */
  TooManyTlsSettings: 'error',
  /** With the policy of the rule it would have more priorities than a rule can have. */
  TooManyPriorities: 'error',
  /** The MeshTailnet has no proxy, or for UDP no relay. */
  ProxyUnknown: 'error',
  /** The proxy of the MeshTailnet is a host name, and EDS takes IP addresses only. */
  ProxyNotAnAddress: 'error',
  /** UDP cannot pass the CONNECT proxies of an External pool. */
  DatagramsThroughProxy: 'error',
  /** The endpoint has no port on the relays of its MeshTailnet. */
  RelayPortMissing: 'error',
  /** The operator has not written the addresses of the endpoint's externalTarget into status.endpoints. */
  ExternalTargetNotResolved: 'error',
  /** The endpoint has an address that must get no traffic, such as that of the API server. */
  AddressRefused: 'error',
} as const satisfies Severities;

/** Why a MeshRoutePolicy does not do for a route or rule what it was written for, beside the reasons above. */
const POLICY = {
  /** Another object is older, or names the target more closely. */
  Conflicted: 'error',
  /** A target does not exist. */
  TargetNotFound: 'error',
  /** No Gateway accepts the route. */
  NoGateway: 'unknown',
  /** No backend of the target is a MeshEndpoints. */
  NoMeshEndpoints: 'error',
  /** The policy selects no endpoint of a backend. */
  NoMatchingEndpoints: 'error',
  /** A Service beyond the rule has TLS. */
  TLSNotSupported: 'error',
  /** Envoy Gateway sends nothing to MeshEndpoints of a rule while a Service of it has no endpoints. */
  ServiceInRule: 'error',
} as const satisfies Severities;

/** What is wrong with objects as they are written, beside the reasons above. */
const OBJECTS = {
  /** A text is not YAML. */
  Syntax: 'error',
  /** A file cannot be read. */
  Unreadable: 'error',
  /** A file is too large, or there are too many. */
  TooMuch: 'error',
  /** The folder itself does not exist, or cannot be read. */
  FolderMissing: 'error',
  /** Some folders cannot be watched, so that changes are found by rescans. */
  NotWatched: 'warning',
  /** Objects of a kind cannot be read. */
  NotRead: 'warning',
  /** There is no object to check. */
  NothingToCheck: 'note',
  /** An object does not pass its schema. */
  Invalid: 'error',
  /** A kind that the API group does not have. */
  UnknownKind: 'error',
  /** A field that the kind does not have. */
  UnknownField: 'warning',
  /** An object is there twice, or mesh-gateway owns it. */
  Repeated: 'error',
  /** meshFQDN is not inside the tailnet. */
  NameNotInTailnet: 'warning',
  /** The devices of tagSelectors are known in the tailnet alone. */
  SelectorsNotChecked: 'note',
  /** tagSelectors match no device. */
  NoDevices: 'error',
  /** Another object lists the VIP service too. */
  ListedByOther: 'error',
  /** No route names the MeshEndpoints. */
  NoRoute: 'note',
} as const satisfies Severities;

/** What is wrong with references of routes, beside the reasons above. */
const ROUTES = {
  /** A backendRef that is meant for MeshEndpoints has no kind. */
  KindMissing: 'error',
  /** A backendRef that is meant for MeshEndpoints has no group. */
  GroupMissing: 'error',
  /** A backendRef that is meant for MeshEndpoints has another group. */
  WrongGroup: 'error',
  /** The annotation by which routes named their backends before. */
  LegacyAnnotation: 'error',
  /** A backendRef has weight 0. */
  NoTraffic: 'note',
  /** All backendRefs of a rule have weight 0. */
  NoWeight: 'warning',
  /** The route has no parentRefs. */
  NoParent: 'error',
  /** A parentRef names what does not exist. */
  ParentNotFound: 'error',
  /** The parent has no listener of that name or port. */
  ListenerNotFound: 'error',
  /** No listener of the parent takes the route. */
  NotAllowedByListeners: 'error',
  /** The route and the listeners have no hostname in common. */
  HostnamesDoNotIntersect: 'error',
} as const satisfies Severities;

/** Why a condition of a MeshGateway or MeshEndpoints is not True, beside the reasons above. */
const GATEWAYS = {
  /** No route to MeshEndpoints attaches to its Gateways. */
  NoMeshRoutes: 'unknown',
  /** Envoy Gateway has not reported that it has translated the settings. */
  NotReported: 'unknown',
  /** There is no endpoint. */
  NoEndpoints: 'unknown',
  /** No mesh pod of a MeshTailnet is ready. */
  PoolNotReady: 'error',
  /** No endpoint of a MeshEndpoints is healthy. */
  NoHealthyEndpoints: 'error',
  /** No MeshEndpoints lists VIP services. */
  NoServices: 'unknown',
  /** VIP services of a MeshEndpoints are not ready. */
  ServicesNotReady: 'error',
  /** The state of VIP services is not known yet. */
  NotReconciled: 'unknown',
} as const satisfies Severities;

/** Why a condition of a MeshEndpoints is not True, beside the reasons above. */
const ENDPOINTS = {
  /** spec.paused is true. */
  Paused: 'error',
  /** The MeshTailnet runs mesh pods, and has no valid credentials. */
  CredentialsInvalid: 'error',
  /** The last list of devices has failed, and the one before is used. */
  Stale: 'error',
  /** The control API does not respond as one. */
  Unreachable: 'error',
  /** Tags lie beyond those that a MeshTailnet or MeshGateway allows. */
  TagNotAllowed: 'error',
  /** A device has a protocol without a default port, and no port. */
  PortUnknown: 'error',
  /** An object has more endpoints than it may have. */
  Truncated: 'error',
  /** The devices of the tailnet are not listed yet. */
  NotListed: 'unknown',
  /** No route that may refer to the object names it. */
  NoRoutes: 'unknown',
} as const satisfies Severities;

/** Why a condition of a MeshTailnet is not True, beside the reasons above. */
const TAILNETS = {
  SecretNotFound: 'error',
  SecretKeyMissing: 'error',
  ScopeMissing: 'error',
  TailnetMismatch: 'error',
  Throttled: 'error',
  ControlURLMissing: 'error',
  Conflict: 'error',
  Deleting: 'error',
  NotAuthenticated: 'error',
  PoolNotReady: 'error',
  AwaitingApproval: 'error',
  DeviceRemoved: 'error',
  KeyRejected: 'error',
  LimitReached: 'error',
  KeyExpired: 'error',
  NotScheduled: 'error',
  ImagePull: 'error',
  CrashLoop: 'error',
  NoAddresses: 'error',
  Starting: 'error',
  NodeAddressRefused: 'error',
  CallersUnknown: 'error',
  TooManyDestinations: 'error',
  NotEnforced: 'error',
  NotInstalled: 'error',
  NoMeshPod: 'unknown',
  NoExtensionServer: 'unknown',
} as const satisfies Severities;

/** Why a VIP service is as its entry in status.vipServices has it, beside the reasons above. */
const VIP_SERVICES = {
  Served: 'note',
  NotServed: 'error',
  NotApproved: 'error',
  Registering: 'error',
  NotRegistered: 'error',
  BeingRemoved: 'error',
  NotFound: 'error',
  NotOwned: 'error',
  NotAdoptable: 'error',
  OwnedByOther: 'error',
  NotShared: 'error',
  TooManyOwners: 'error',
  TooManyServices: 'error',
  ProtocolNotSupported: 'error',
  NotIdentified: 'error',
  Failed: 'error',
  Pending: 'error',
  Registered: 'error',
  Malformed: 'error',
  Unavailable: 'error',
} as const satisfies Severities;

/** What is wrong with an endpoint, as its entry in status.endpoints has it, beside the reasons above. */
const ENTRIES = {
  /** It is checked, and no check has ended yet. */
  NotCheckedYet: 'unknown',
  /** Its check has failed as often as its threshold allows. */
  CheckFailed: 'error',
  /** Its protocol cannot be checked on the path that it has. */
  CannotBeChecked: 'error',
  /** What it refers to does not exist, or cannot be used. */
  InvalidReference: 'error',
  /** Its externalTarget has no addresses, or old ones. */
  NotResolved: 'error',
  /** Relay ports have not been assigned yet. */
  RelayPortPending: 'unknown',
  /** It has no relay port. */
  NoRelayPort: 'error',
} as const satisfies Severities;

/** What Envoys do with what they are sent. */
const ENVOYS = {
  /** An Envoy rejects endpoints; the log of the extension server has this reason. */
  EndpointsRejected: 'error',
} as const satisfies Severities;

/** Why a backendRef, or an endpoint of the object that it names, gets no traffic. */
export type UnusedReason = keyof typeof UNUSED;

/** Every reason of a problem, with its severity. A reason means the same wherever it is reported. */
export const REASONS = {
  ...UNUSED,
  ...POLICY,
  ...OBJECTS,
  ...ROUTES,
  ...GATEWAYS,
  ...ENDPOINTS,
  ...ENTRIES,
  ...TAILNETS,
  ...VIP_SERVICES,
  ...ENVOYS,
} as const satisfies Severities;

/** Why something is a problem, for machines. */
export type Reason = keyof typeof REASONS;
