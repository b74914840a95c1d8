import { error, warning } from './declare.ts';

/** What is wrong with an installation, as `doctor` finds it; statuses and `check` have the reasons of other lines. */
export const INSTALLATION = {
  'check of doctor': {
    KubernetesTooOld: error('the API server is older than the CRDs need', 'upgrade the cluster'),
    DefinitionsDiffer: error('a CRD is missing, or is of another version', 'apply `manifests/crds.yaml`'),
    GatewayAPIMissing: error('the CRDs of Gateway API are not installed', 'install them'),
    RightsMissing: error(
      'a ServiceAccount lacks a right that it needs',
      'apply `manifests/rbac.yaml`, or the roles of Envoy Gateway',
    ),
    NotAvailable: error(
      'a Deployment of mesh-gateway does not exist, or has no available pod',
      'follow the message',
    ),
    ImagePull: error(
      'a container cannot get its image',
      'push it to the registry, or correct its name in the configuration',
    ),
    PodFailing: error('a pod crashes repeatedly, or no node can run it', 'follow the message'),
    PodsRefused: error('a ResourceQuota, or something else, lets no pod be created', 'raise the quota'),
    NoLeader: error('no operator leads, so nothing is reconciled', 'read the log of the operator'),
    ClockSkew: error(
      'the clocks of the operator and the API server differ',
      'synchronize those of all nodes',
    ),
    DNSFailing: error(
      "the cluster's DNS is not ready, or has another domain than the configuration",
      'follow the message',
    ),
    ConnectionForbidden: error(
      'NetworkPolicies do not permit a connection',
      'apply the policy in the message',
    ),
    EnvoyGatewayUnavailable: error('Envoy Gateway does not run, or is too old', 'follow the message'),
    HookMissing: error(
      'Envoy Gateway does not call the extension server, or with other settings than it needs',
      'merge the configuration in `manifests/envoy-gateway/`, and restart Envoy Gateway',
    ),
    MessageLimitTooLow: error(
      'Envoy Gateway sends smaller messages than the extension server accepts',
      'raise `maxMessageSize` of `extensionManager`',
    ),
    RestartNeeded: error('Envoy Gateway runs with an earlier configuration', 'restart it'),
    NotTranslated: error(
      'Envoy Gateway has not reported the present revision of a Gateway',
      'see the checks before it',
    ),
    CertificateExpired: error('a CA certificate is not valid now', 'replace it'),
    ListenerRefused: error('Envoy Gateway does not accept a listener', 'follow the message'),
    NotConnected: error('a mesh pod cannot connect to an endpoint', 'check the device and its service'),
    TailnetNotFound: error('there is no MeshTailnet', 'create one'),
    ConnectionsRefused: warning(
      'the proxy of a mesh pod has refused connections',
      'read its log, which names callers and destinations',
    ),
  },
} as const;
