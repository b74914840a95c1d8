import { error, note, warning } from './declare.ts';

/** What is wrong with objects, routes and files, by where it is. */
export const OBJECTS = {
  'reference of a route': {
    KindMissing: error(
      'a `backendRef` that is meant for MeshEndpoints has no `kind`',
      'add `kind: MeshEndpoints`',
    ),
    GroupMissing: error(
      'a `backendRef` that is meant for MeshEndpoints has no `group`',
      'add the `group` in the message',
    ),
    WrongGroup: error('a `backendRef` that is meant for MeshEndpoints has another `group`', 'correct it'),
    LegacyAnnotation: error(
      'the route names its backends by the annotation of earlier versions',
      'remove it, and write the `backendRefs` in the message',
    ),
    NoTraffic: note('a `backendRef` has weight 0', 'raise it, or remove the reference'),
    NoWeight: warning('all `backendRefs` of a rule have weight 0', 'raise one'),
    NoParent: error('the route has no `parentRefs`', 'name a Gateway'),
    ParentNotFound: error(
      'a `parentRef` names what does not exist, or is neither a Gateway nor a ListenerSet',
      'create it, or correct the reference',
    ),
    ListenerNotFound: error(
      'the parent has no listener of that name or port',
      'correct `sectionName` or `port`',
    ),
    NotEnvoyGateway: error(
      'the Gateway is of another implementation, which knows no MeshEndpoints',
      'name a Gateway whose GatewayClass is of Envoy Gateway',
    ),
    NotAllowedByListeners: error(
      'no listener of the parent takes the route',
      'change `allowedRoutes` of the listener, or the reference',
    ),
    HostnamesDoNotIntersect: error(
      'the route and the listeners have no hostname in common',
      'correct `hostnames`',
    ),
  },
  'object or file': {
    Syntax: error(
      'the text is not YAML, a plain list of objects, or empty',
      'correct it; in standalone, delete a file to delete its objects',
    ),
    Unreadable: error('the file cannot be read', 'check that it exists, and its permissions'),
    TooMuch: error('the file is too large, or there are too many', 'divide it, or move other files away'),
    FolderMissing: error(
      'the folder does not exist, or cannot be read; its previous objects stay',
      'create it, or correct the path',
    ),
    NotWatched: warning(
      'some folders cannot be watched, so that changes are found by rescans',
      'raise the limit in the message',
    ),
    NotRead: warning('objects of a kind cannot be read', 'follow the message; often a right is missing'),
    NothingToCheck: note('there is no object to check', 'name files, folders or a cluster with objects'),
    Invalid: error('the object does not pass its schema', 'correct the field in the message'),
    UnknownKind: error(
      'the API group does not have the kind, or not in this version',
      'correct `kind` or `apiVersion`; in files only if your CRDs are not newer than those in the message',
    ),
    ClassNotFound: error(
      'the GatewayClass of a Gateway does not exist, so that nothing serves it',
      'create it, or correct `gatewayClassName`',
    ),
    UnknownField: warning(
      'the kind does not have the field, so that the API server removes it',
      'correct it, or remove it; in files only if your CRDs are not newer than those in the message',
    ),
    NotRendered: error(
      'the file is a template, or is patched by kustomize, so that its objects are not known',
      'render it first, and check what comes out',
    ),
    CredentialInObject: error(
      'a credential is written into an object, where everybody sees it who may read that',
      'remove it, revoke it where others could read it, and store it in a Secret',
    ),
    NoEffect: warning(
      'a policy cannot work on its target, or a setting does nothing as the object is',
      'follow the message',
    ),
    SameMatch: note(
      'a rule matches the same requests as one of an older route, which gets all of them',
      'change `hostnames` or `matches` of one',
    ),
    InvalidParameters: error(
      'the EnvoyProxy that `parametersRef` of a GatewayClass or Gateway names does not exist',
      'create it, or correct the reference',
    ),
    Repeated: error('the object is there twice, or mesh-gateway owns it', 'remove one of them'),
    NameNotInTailnet: warning(
      '`meshFQDN` is not inside the tailnet',
      'write the name of the device, which `tailscale status` prints',
    ),
    CertificateNotFound: warning(
      'the ConfigMap of `tls.caRef` in the same file has no certificates for it',
      'correct the ConfigMap, or `tls.caRef`',
    ),
    SelectorsNotChecked: note(
      'which devices match `tagSelectors` is known in the tailnet alone',
      'once it is applied, `status.endpoints` lists them',
    ),
    NoDevices: error('`tagSelectors` match no device', 'correct the selectors, or the tags of devices'),
    ListedByOther: error('another object lists the VIP service too', 'use another name, or remove it there'),
    NoRoute: note('no route names the MeshEndpoints', 'name it in a `backendRef`'),
  },
  'request that is traced': {
    NoGateway: error(
      'there is no Gateway, or not the one of `--from`',
      'create it, or name the files that have it',
    ),
    NoListener: error(
      'no listener is for the protocol, port and host of the request',
      'add one, or use one that exists',
    ),
    NoRouteAttached: error('no route attaches to the listener', 'name it in `parentRefs` of one'),
    NoRouteForHost: error('no route at the listener is for the host', 'add it to `hostnames` of one'),
    NoRuleMatches: error(
      'no rule of the routes for the host matches the request',
      'send another one, or add a rule',
    ),
    NoBackends: error('the rule has no `backendRefs`', 'add one'),
    EndpointDraining: error(
      'the MeshEndpoints is being deleted',
      'create it again after its deletion, or use another one',
    ),
    CallerRefused: error(
      'the proxy of a mesh pod refuses an Envoy of the Gateway',
      'see `FrontReady` of the MeshTailnet',
    ),
    EnvoyDiffers: error(
      'an Envoy has, or uses, something else than what the objects lead to',
      'follow the message',
    ),
    NoAnswer: error(
      'no answer came to the request that was sent',
      'see the error; check the address and the network',
    ),
    ServerError: error(
      'the answer has a status of 500 or above',
      'follow the steps before it, and the log of the service',
    ),
  },
  'log of the extension server': {
    EndpointsRejected: error('an Envoy rejects endpoints', 'report the line, which has its error'),
  },
} as const;
