import { error, note, unknown, warning } from './declare.ts';

/** The reasons of the conditions of a MeshTailnet. */
export const MESH_TAILNET = {
  'MeshTailnet Ready': {
    TailnetReady: note('the control API accepts the credentials, and a pool carries traffic'),
    Conflict: error('an older MeshTailnet has the same domain', 'delete one of the two'),
    NotAuthenticated: error('`Authenticated` is False', 'see that condition'),
    PoolNotReady: error('no mesh pod is ready, and routes answer 503', 'see `PoolReady`'),
    Deleting: error(
      'the object is being deleted, and its devices with it',
      'wait; the message names what fails, see [Remove](tailnets.md#remove-a-tailnet)',
    ),
  },
  'MeshTailnet Authenticated': {
    Authenticated: note('the control API accepts the credentials'),
    SecretNotFound: error(
      'the Secret does not exist, or the operator may not read it',
      "create it in the operator's namespace, or follow the message",
    ),
    SecretKeyMissing: error('it has no value under `clientIdKey` or `clientSecretKey`', 'add the value'),
    CredentialsInvalid: error(
      'the control API refuses the client, also after one renewal of the token',
      'store the credentials of a client that exists and is not revoked',
    ),
    ScopeMissing: error(
      'the credentials lack the scope that the message names',
      'grant the client all scopes that the message names: with fewer, the next operation fails, the removal at the latest',
    ),
    TailnetMismatch: error(
      'devices are in another domain than `spec.tailnet`',
      'correct `spec.tailnet`, or use the credentials of that tailnet',
    ),
    Throttled: error(
      'the control API responds with 429, or `spec.rateLimit` is used up',
      'wait; raise `spec.rateLimit` or `spec.syncInterval`',
    ),
    Unreachable: error(
      'no connection, TLS or proxy error, timeout, 5xx, or the response is not of a control API',
      'check `spec.controlURL`, `controlCA`, `proxyURL` and the network',
    ),
    ControlURLMissing: error(
      'neither `spec.controlURL` nor `CONTROL_API_URL` is set, and the domain is not under `ts.net`',
      'set one of them; an `External` pool is `Ready` without, and there is no Event',
    ),
    Conflict: unknown('an older MeshTailnet has the same domain', 'delete one of the two'),
  },
  'MeshTailnet PoolReady': {
    PoolReady: note('all mesh pods carry traffic, or the proxies of others do'),
    RelayUnreachable: warning(
      'all mesh pods are ready, and one reaches no relay (DERP), so that it reaches only devices on a direct path',
      'read its log, and check that the relay can be reached from the cluster',
    ),
    HealthWarnings: warning(
      'all mesh pods are ready, and the mesh daemon of one reports problems, such as a control server that it cannot reach',
      'read its log',
    ),
    AwaitingApproval: error(
      'a device joined, and the tailnet waits for its approval',
      'approve the device that the message names in the admin console, or set `configuration.devices.preauth: true` and `requireApproval: false`',
    ),
    DeviceRemoved: error(
      'the device of a pod was deleted from the tailnet',
      'wait: the pod joins as a new device; to have fewer pods, change `spec.pool.replicas`',
    ),
    KeyRejected: error(
      'the control API refuses to create a key with `spec.tags`, or the control server refused the key of a pod',
      'give the policy file and the client the tags that the message names; a pod gets another key by itself',
    ),
    LimitReached: error(
      'the control API refuses to create a key with 402, because of a limit of the plan',
      'remove devices and keys that are not used, or raise the limit; the control API does not return how many are left',
    ),
    KeyExpired: error(
      'the node key of a device has expired',
      'wait: the pod logs in again with a new join key, or joins as a new device; turn off key expiry for tagged devices',
    ),
    NotScheduled: error(
      'no node can run a pod',
      'check `spec.pool.resources`, `nodeSelector` and `tolerations`',
    ),
    ImagePull: error(
      'the image of the mesh pods cannot be pulled',
      'check `spec.pool.image`, or `meshPods.image` of the [configuration](install.md#all-fields-of-the-configuration)',
    ),
    CrashLoop: error(
      'a pod crashes repeatedly; the message has the last line of its log',
      'read its log with `kubectl logs --previous`',
    ),
    NotAuthenticated: error(
      'a pod needs a join key or its device is to be deleted, and the credentials do not work or lack a scope',
      'see `Authenticated`, or grant the client all scopes that the message names',
    ),
    NoAddresses: error(
      'mode `External` without an IP address, or mode `Managed` without a cluster',
      'list IP addresses under `spec.pool.addresses`',
    ),
    Starting: error(
      'pods are starting, the control API is slow or away, or a Secret with the name of a pod is not of a mesh pod',
      'follow the message, or wait',
    ),
  },
  'MeshTailnet FrontReady': {
    FrontReady: note('the proxy of mesh pods serves Envoys and operators alone, toward declared endpoints'),
    Open: note(
      'the proxy of mesh pods serves every caller: `spec.pool.front` is `Off`, or NetworkPolicies are enforced',
    ),
    NodeAddressRefused: error(
      'an Envoy with hostNetwork, or whose connections its node translates, arrives with the address of its node',
      'add the address or the range of nodes to `spec.pool.allowedCallers`: [how](tailnets.md#who-may-use-the-proxy)',
    ),
    CallersUnknown: error(
      'the operator has not listed the pods of Envoys yet',
      'see the log of the operator: it needs the Role in each of `envoyGateway.proxyNamespaces`',
    ),
    TooManyCallers: error(
      'there are more Envoys than the list of callers may have: 10,000, or what fits beside UDP endpoints and VIP services',
      'run fewer pods of Envoys, or add a range of their addresses to `spec.pool.allowedCallers`',
    ),
    TooManyDestinations: error(
      'namespaces declare more endpoints than fit into the lists: [how many](limits.md)',
      'declare fewer, or divide them among MeshTailnets',
    ),
  },
  'MeshTailnet NetworkPoliciesEnforced': {
    NetworkPoliciesEnforced: note(
      'each operator pod connects where the network policies allow it, and nowhere else',
    ),
    NotEnforced: error(
      'the operator can connect to a port that the network policies forbid: [when](tailnets.md#are-network-policies-enforced)',
      'run a network plugin that enforces NetworkPolicies; until then, run no pods that you do not trust',
    ),
    NotInstalled: error(
      'the configuration has `networkPolicies.enabled: false`',
      'set it to `true` and apply the manifests; until then, run no pods that you do not trust',
    ),
    NoMeshPod: unknown('no mesh pod is ready', 'see `PoolReady`'),
    NoExtensionServer: unknown('no pod of the extension server is ready', 'run `mesh-gateway doctor`'),
    Unreachable: unknown(
      'an operator pod cannot connect to any mesh pod',
      'check the network of the pod that the message names',
    ),
    NotReported: unknown(
      'an operator pod has not reported for minutes, or is of an earlier version',
      'wait, or read the log of the pod that the message names',
    ),
  },
  'MeshTailnet ServiceDiscoverySupported': {
    ServiceDiscoverySupported: note('the control server has VIP services'),
    NotSupported: error(
      'the control server has no VIP services, as headscale has none',
      'nothing, unless MeshEndpoints list `vipServices`: these are `NotSupported`',
    ),
  },
} as const;
