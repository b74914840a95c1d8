import { error, note, unknown } from './declare.ts';

/** The reasons of the conditions of a MeshGateway and a MeshRoutePolicy. */
export const MESH_GATEWAY = {
  'MeshGateway Accepted': {
    Accepted: note('it applies to all of its Gateways'),
    Conflicted: error(
      'an older MeshGateway targets one of them too, and applies to it; the message names both',
      'remove the Gateway from `targetRefs` of one of the two',
    ),
    TargetNotFound: error(
      'no Gateway of that name exists in its namespace',
      'create the Gateway, or correct `targetRefs`',
    ),
  },
  'MeshGateway Programmed': {
    Programmed: note('Envoy Gateway has translated its Gateways with these settings'),
    NotReported: unknown('it has not reported that yet', 'wait; if it stays, the message has what to check'),
    NoMeshRoutes: unknown(
      'no route to MeshEndpoints attaches to its Gateways',
      'nothing: the settings apply to the first such route',
    ),
  },
  'MeshGateway EndpointsReady': {
    EndpointsReady: note('each MeshEndpoints of the routes has a healthy endpoint'),
    NoHealthyEndpoints: error(
      'one of them has none, so that routes to it fail',
      'see the condition `Ready` of the MeshEndpoints in the message',
    ),
    NoEndpoints: unknown('the routes have no endpoint', 'see `RoutesResolved` of the MeshEndpoints'),
  },
  'MeshGateway ServicesReady': {
    ServicesReady: note(
      'the [VIP services](mesh-gateway.md#vip-services) that it decides about are registered and served',
    ),
    ServicesNotReady: error(
      'one of them is not',
      'see `VIPServicesReady` of the MeshEndpoints in the message',
    ),
    NotReconciled: unknown('the state of one is not known yet', 'wait'),
    NoServices: unknown('it decides about none'),
  },
  'MeshRoutePolicy Accepted': {
    Accepted: note('it applies to its targets'),
    Conflicted: error(
      'another policy applies to one of them, which is older or names the rule; the message names it',
      'remove the target from one of the two',
    ),
    TargetNotFound: error(
      'no such route exists in its namespace, or the route has no such rule',
      'create the route, set `name` in the rule, or correct `targetRefs`',
    ),
    NoGateway: unknown('no Gateway accepts the route', 'see `status.parents` of the route'),
  },
  'MeshRoutePolicy ResolvedRefs': {
    ResolvedRefs: note('it has its effect'),
    NoMeshEndpoints: error(
      'the route has no MeshEndpoints among its backends',
      'add one, or correct `targetRefs`',
    ),
    NoMatchingEndpoints: error(
      '`require` selects no endpoint of a backend, which gets no traffic',
      'add the metadata to its endpoints, or correct `require`',
    ),
    BackendNotFound: error(
      'a level names a backend that the rule lacks and that is no Service, or a Service that does not exist',
      'correct the level, or create the Service',
    ),
    RefNotPermitted: error(
      'a level names a Service of another namespace without a ReferenceGrant',
      'create the one in the message',
    ),
    PortNotFound: error('the Service has no such port for the transport of the route', 'use one that it has'),
    TLSNotSupported: error(
      'a Service beyond the rule has TLS',
      'add it to `backendRefs`, or name one without TLS',
    ),
    ProtocolConflict: error(
      'a Service beyond the rule has another version of HTTP than the MeshEndpoints of the rule',
      'set `appProtocol` of its port, or give it a route of its own',
    ),
    TooManyPriorities: error(
      'a rule would have more than 16 priorities; endpoints in later ones get no traffic',
      'list fewer levels or preferences, or give endpoints equal priorities',
    ),
  },
  'MeshRoutePolicy FailoverSupported': {
    Supported: note('levels are used whatever endpoints the backends have'),
    ServiceInRule: error(
      "a Service is a backend of the rule, and Envoy Gateway's routing type for it is `Endpoint`",
      'name it in the level alone, or apply the policy in the message',
    ),
    DividedRule: error(
      'each backend of the rule has [an Envoy cluster of its own](traffic.md#rules-that-are-divided), so that no level is used, and weights decide',
      'follow the message, which has the cause',
    ),
  },
} as const;
