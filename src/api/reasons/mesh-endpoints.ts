import { error, note, unknown, warning } from './declare.ts';

/** The reasons in the status of a MeshEndpoints, by condition or list. */
export const MESH_ENDPOINTS = {
  'MeshEndpoints RoutesResolved': {
    BackendNotFound: error(
      'the MeshEndpoints does not exist in that namespace',
      'create it, or correct `name` and `namespace` of the `backendRef`',
    ),
    RefNotPermitted: error(
      'the MeshEndpoints is in another namespace, which has no ReferenceGrant for this kind of route',
      'create the ReferenceGrant in the message',
    ),
    PortMissing: error('the `backendRef` has no `port`', 'set it to a port of the object'),
    PortNotFound: error('no endpoint of the object has exactly this port', 'use a port that the object has'),
    ProtocolMismatch: error(
      'this kind of route does not support the protocol of the endpoint ([table](traffic.md#from-a-cluster-to-endpoints))',
      'use another kind of route, or change the protocol',
    ),
    ProtocolConflict: error(
      'the rule mixes endpoints of two protocols, and an Envoy cluster has one: that of the first endpoint',
      'give them rules of their own',
    ),
    DuplicateAddress: error(
      "two endpoints of a rule have the same address and port, are reached over TLS by the same `meshFQDN` and port, or have the same `externalTarget` or only addresses of another one's; an address in two tailnets is used in neither",
      'remove one of them, or give each its own `meshFQDN` or rule',
    ),
    TailnetNotFound: error(
      "no MeshTailnet has `spec.tailnet` equal to the object's",
      'create one, or correct `spec.tailnet` of the object',
    ),
    NamespaceNotAllowed: error(
      '`spec.allowedNamespaces` of the MeshTailnet does not select the namespace of the MeshEndpoints',
      'add the labels that it selects to the namespace, or change the selector',
    ),
    MixedBackends: error(
      'a rule has MeshEndpoints together with backends that cannot share it ([which](traffic.md#rules-with-other-backends))',
      'move the MeshEndpoints to a rule of its own, or give the others weight 0',
    ),
    ProxyUnknown: error(
      'the MeshTailnet has no proxy, or no relay for UDP',
      'follow the message, which has `PoolReady` of the MeshTailnet',
    ),
    ProxyNotAnAddress: error(
      '`spec.pool.addresses` has host names only, and Envoy needs `IP:port`',
      'write `IP:port`',
    ),
    DatagramsThroughProxy: error(
      'UDP does not pass the proxies of an `External` pool ([UDP](traffic.md#udp))',
      'set `spec.pool.mode` to `Managed`, or use data path `Direct`',
    ),
    RelayPortMissing: error(
      'the endpoint has no port on the relays in the mesh pods; the message has the reason from `status.endpoints`, such as that all ports are in use',
      'follow the message',
    ),
    CertificateNotFound: error(
      'the ConfigMap of `tls.caRef`, or its key, does not exist',
      'create it, or correct `tls.caRef`',
    ),
    InvalidCertificate: error(
      '`tls.ca`, or the key of the ConfigMap of `tls.caRef`, is not a list of complete PEM certificates',
      'write whole PEM certificates, each from its BEGIN line to its END line, and nothing else',
    ),
    TooManyTlsSettings: error(
      'a rule has endpoints of more than 64 different TLS settings, or more than 256 KB of them, certificates included; or the routes of its namespace have more than [their share](limits.md), or than their equal part of what all namespaces have; or the certificates of `tls.caRef` exceed the [share of the namespace](limits.md)',
      'use equal settings or fewer certificates, or give endpoints rules of their own',
    ),
    TooManyPriorities: error(
      'with a [MeshRoutePolicy](route-policy.md#when-traffic-moves) the rule would have more than 16 priorities',
      'list fewer preferences, or give endpoints equal priorities',
    ),
    ExternalTargetNotResolved: error(
      'the operator has written no addresses of `externalTarget` into `status.endpoints`; the message has its reason, such as that the name does not exist or an address is not allowed',
      'follow the message',
    ),
    AddressRefused: error(
      '`meshIP` is the address of the API server or in `REFUSED_ADDRESSES`, or `status.endpoints` has an address of `externalTarget` that may get no traffic, such as a private one that `EXTERNAL_TARGETS_ALLOW` does not list',
      'name another device or service',
    ),
    NotSupported: error(
      'a `backendRef` to MeshEndpoints has a filter that does not modify headers, or one with a header that cannot be set; or a filter RequestMirror names the MeshEndpoints, so that Envoy Gateway answers all requests of its rule with 500',
      'move the filters of the `backendRef` to those of the rule; mirror to a Service',
    ),
    Resolved: note('every route that names the object resolves to its endpoints'),
    NoRoutes: unknown(
      'no route that may refer to the object has it among its `backendRefs`',
      'check `group`, `kind`, `name` and `namespace` of the `backendRef`, and the ReferenceGrant for a route of another namespace',
    ),
  },
  'MeshEndpoints Ready': {
    EndpointsConfigured: note('an endpoint is healthy or not checked'),
    Paused: error('`spec.paused` is true', 'set it to false'),
    TailnetNotFound: error(
      'no MeshTailnet has `spec.tailnet` of the object',
      'correct it, or apply the MeshTailnet in the message',
    ),
    NamespaceNotAllowed: error(
      '`spec.allowedNamespaces` of the MeshTailnet does not select the namespace',
      'label the namespace, or change the selector',
    ),
    CredentialsInvalid: error(
      'the MeshTailnet runs mesh pods and has no valid credentials',
      'see its condition `Authenticated`',
    ),
    InvalidReference: error(
      '`tls.caRef`, `headersFrom`, `externalTarget` or `meshIP` of an endpoint cannot be used',
      'follow the message, which names the endpoint and the field',
    ),
    NoEndpoints: error(
      '`spec.endpoints` is empty, and `tagSelectors` find no device',
      'list an endpoint; with selectors, see `Discovered`',
    ),
    NoHealthyEndpoints: error(
      'no endpoint is healthy; the message has the first errors',
      'see [Errors](mesh-endpoints.md#errors)',
    ),
  },
  'MeshEndpoints Discovered': {
    DevicesDiscovered: note(
      'the list of devices is read, and each device that matches `tagSelectors` is an endpoint',
    ),
    Stale: error(
      'the last list of devices could not be read; the endpoints of the one before stay',
      'see the condition `Authenticated` of the MeshTailnet',
    ),
    Unreachable: error(
      'no list of devices was read; endpoints that were found before stay',
      'see the condition `Authenticated` of the MeshTailnet',
    ),
    TagNotAllowed: error(
      '`spec.allowedTags` of the MeshTailnet has no tag that a selector could match',
      'correct the selector, or add a tag there',
    ),
    ProtocolMismatch: error(
      '`endpointTemplate` has a `tls` or `healthCheck` that does not fit the protocol of a device, which is left out',
      'correct the template, or the tag `protocol-x` of the device',
    ),
    DevicesAway: error(
      'every device that matches `tagSelectors` is offline, or its key has expired',
      'start it or renew its key, or set `endpointTemplate.include`',
    ),
    PortUnknown: error(
      'a device has a protocol without a default port and no port, and is left out',
      'give it a tag `port-N`, or set `endpointTemplate.port`',
    ),
    Truncated: error(
      'more than 1000 endpoints; those after the first 1000 by name are left out',
      'narrow the selectors, or divide the object',
    ),
    NotListed: unknown(
      'the devices of the tailnet are not listed yet',
      'wait for one `syncInterval` of the MeshTailnet',
    ),
    TailnetNotFound: unknown(
      'no devices are listed: the condition `Ready` has the same reason',
      'see `Ready`',
    ),
    NamespaceNotAllowed: unknown(
      'no devices are listed: the condition `Ready` has the same reason',
      'see `Ready`',
    ),
  },
  'MeshEndpoints Programmed': {
    Programmed: note('Envoy Gateway has translated the routes that name the object'),
    NotReported: unknown(
      'it has not reported that yet, or no route names a Gateway that exists; without a cluster it never does',
      'check that Envoy Gateway runs and has `policyResources` with the kind MeshBinding',
    ),
    NotSeen: error(
      'Envoy Gateway reports `BackendNotFound` for an HTTPRoute or GRPCRoute whose MeshEndpoints have existed for 30 s: it started before their CRD was served, or it does not watch their namespace',
      '`mesh-gateway doctor` shows which: restart it, or correct `provider.kubernetes.watch`',
    ),
  },
  'MeshEndpoints status.endpoints': {
    NotCheckedYet: unknown(
      'the endpoint has no result of a check yet',
      'wait; if it stays, see `Ready` and `PoolReady`',
    ),
    CheckFailed: error(
      'the endpoint is unhealthy by its checks',
      'see its `error` in [Errors](mesh-endpoints.md#errors)',
    ),
    CannotBeChecked: error(
      'the endpoint cannot be checked on its path',
      'follow the `error`, or set `healthCheck.enabled` to false',
    ),
    InvalidReference: error(
      'the endpoint names something that cannot be used, or of which an older version is in use: `Ready` has it too',
      'follow the `error`, which names the field',
    ),
    NotResolved: error(
      'the endpoint has an `externalTarget` that is not resolved yet, or whose last lookup failed: its last addresses stay in use',
      'wait; if it stays, check the name and its DNS server',
    ),
    NameNotInTailnet: warning(
      'the endpoint has a `meshFQDN` outside of the tailnet; it is used by its address',
      'correct `meshFQDN`',
    ),
    RelayPortPending: unknown('the endpoint gets its relay port soon', 'wait; if it stays, see `PoolReady`'),
    NoRelayPort: error(
      'the endpoint has no relay port on which a relay listens, or no MeshTailnet to have one on',
      'follow the `error`; see `Ready` and `PoolReady`',
    ),
  },
  'MeshEndpoints status.vipServices': {
    Served: note('`Registered`: a device that is online serves it, and is approved'),
    NotServed: error(
      '`Registered`: no device is known to serve it',
      'see the status of its endpoint, and the log of `relay`',
    ),
    Registering: error('`Pending`: it was just written, and is read back in a few seconds', 'wait'),
    NotApproved: error(
      '`Pending`: devices wait for approval',
      '[approve them](vip-services.md#approve-the-devices)',
    ),
    NotFound: error(
      '`Pending`: `autoRegister` is false, and the service does not exist',
      'create it, or set `autoRegister: true`',
    ),
    NotRegistered: error(
      '`Pending`: the object is paused, its MeshGateway has `serviceCoordination.enabled: false`, or its MeshTailnet is being deleted',
      'see the message',
    ),
    BeingRemoved: error(
      '`Pending`: another installation is removing it, or had it a short time ago',
      'wait up to 10 minutes',
    ),
    NotOwned: error(
      '`Conflict`: the tailnet has a service of this name that mesh-gateway did not create',
      'use another name, or [adopt it](vip-services.md#adopt-a-service)',
    ),
    NotAdoptable: error(
      '`Conflict`: someone else has made it, and the MeshTailnet does not list it',
      'add the line of the message, or use another name',
    ),
    NotShared: error(
      '`Conflict`: another installation has it, and does not [share it](vip-services.md#share-a-service-between-clusters) with this object',
      'add the line of the message there, or use another name',
    ),
    OwnedByOther: error(
      '`Conflict`: another installation has it, and one of the two has the strategy `isolated`',
      'use another name, or the strategy `shared` in both',
    ),
    TooManyOwners: error(
      '`Conflict`: the service has 64 owners or 16 KB of them; one with more is written by no installation',
      'use another name, or remove others',
    ),
    ListedByOther: error(
      '`Conflict`: another MeshEndpoints of this cluster [has the name](vip-services.md#who-gets-a-name), or had it a short time ago',
      'use another name, or wait',
    ),
    TooManyServices: error(
      '`Failed`: the namespace has [its share](limits.md) of `operator.maxVipServices`: 125, an eighth of 1,000; or all are taken',
      'remove others, or raise `operator.maxVipServices`',
    ),
    TargetNotFound: error(
      '`Failed`: the object has no endpoint `targetEndpoint`; a registration that exists is kept',
      'correct it',
    ),
    ProtocolNotSupported: error('`Failed`: the endpoint is a UDP endpoint', 'VIP services carry TCP only'),
    NamespaceNotAllowed: error(
      '`Failed`: the MeshTailnet does not allow the namespace',
      'see the condition `Ready`',
    ),
    TagNotAllowed: error(
      '`Failed`: the MeshTailnet or a MeshGateway does not allow one of [its tags](vip-services.md#tags); a registration that exists is kept',
      'see the message',
    ),
    PortMissing: error('`Failed`: an adopted service has no such port', 'add the port to the service'),
    NotSupported: error(
      '`NotSupported`: the control server has no VIP services, or there is no cluster (standalone)',
    ),
    Invalid: error(
      '`Failed`: the control API refuses it; it is tried again after 30 s to 5 minutes',
      'follow the message; often the name is that of a device, or the tag is not permitted',
    ),
    ScopeMissing: error(
      '`Failed`: the credentials lack the scope `services`',
      'grant it to the OAuth client',
    ),
    CredentialsInvalid: error(
      '`Failed`: the control API refuses the credentials',
      'see `Authenticated` of the MeshTailnet',
    ),
    Throttled: error('`Failed`: the control API limits the rate of requests', 'wait'),
    Unavailable: error(
      '`Failed`: the control API fails, or responds with 5xx; it is tried again after 30 s to 5 minutes',
      'wait',
    ),
    Unreachable: error(
      '`Failed`: the control API cannot be reached',
      'see `Authenticated` of the MeshTailnet',
    ),
    Malformed: error(
      '`Failed`: the response is not of a control API',
      'see `Authenticated` of the MeshTailnet',
    ),
  },
  'MeshEndpoints VIPServicesReady': {
    ServicesReady: note('all VIP services are registered and served'),
    NotReconciled: unknown('the services of the tailnet are not read yet', 'wait'),
    NotSupported: error('the control server has no VIP services, or there is no cluster (standalone)'),
    Conflict: error(
      'another object, or someone else, has a VIP service',
      'follow the message; `status.vipServices` has all of them',
    ),
    Failed: error('a VIP service is refused', 'follow the message; `status.vipServices` has all of them'),
    Pending: error('a VIP service is not registered yet', 'follow the message, or wait'),
    NotServed: error(
      'no device is known to serve a VIP service',
      'see the status of its endpoint, and the log of `relay`',
    ),
    NotIdentified: error(
      'the operator cannot read Namespace `kube-system`, whose uid identifies the cluster',
      'apply the ClusterRole of the operator',
    ),
    NotAuthenticated: error('the MeshTailnet is not authenticated', 'see its condition `Authenticated`'),
    ScopeMissing: error(
      'the credentials lack the scope `services`, or the tailnet has no VIP services',
      'grant it to the OAuth client',
    ),
    CredentialsInvalid: error(
      'the control API refuses the credentials, so that services are as they were',
      'see `Authenticated` of the MeshTailnet',
    ),
    Throttled: error(
      'the control API limits the rate of requests, so that services are as they were',
      'see `Authenticated` of the MeshTailnet',
    ),
    Unavailable: error(
      'the control API fails, so that services are as they were',
      'see `Authenticated` of the MeshTailnet',
    ),
    Unreachable: error(
      'the control API cannot be reached, so that services are as they were',
      'see `Authenticated` of the MeshTailnet',
    ),
    Malformed: error(
      'the response is not of a control API, so that services are as they were',
      'see `Authenticated` of the MeshTailnet',
    ),
    Invalid: error(
      'the control API refuses the request, so that services are as they were',
      'see `Authenticated` of the MeshTailnet',
    ),
  },
} as const;
