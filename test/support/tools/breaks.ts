import { endpoint } from '../objects.ts';
import { EXPIRED_CERTIFICATE } from '../traffic/certificates.ts';
import {
  tailnetWith,
  editConfig,
  OTHER_EXTENSION,
  status,
  crash,
  withoutRule,
  withoutPort,
} from './edits.ts';
import { condition, find, set } from './installation.ts';
import type { Installation, Json } from './installation.ts';

/** What is broken, the check that fails, what it reports, and a part of the fix where the text is not the fix. */
type Break = readonly [
  what: string,
  change: (installation: Installation) => void,
  check: string,
  text: string,
  fix?: string,
];

/** One for each thing that can be broken. */
export const BREAKS: readonly Break[] = [
  [
    'an old CRD',
    all => {
      const schema = find(all.definitions, 'meshendpoints.mesh-gateway.dev');
      const [version] = (schema['spec'] as Json)['versions'] as Json[];
      const spec = (((version?.['schema'] as Json)['openAPIV3Schema'] as Json)['properties'] as Json)['spec'];
      delete ((spec as Json)['properties'] as Json)['tagSelectors'];
    },
    'crds',
    'CRD meshendpoints.mesh-gateway.dev is of another version: the API server drops spec.tagSelectors',
    'kubectl apply --server-side --force-conflicts -f manifests/crds.yaml',
  ],
  [
    'a CRD that does not exist',
    all => void all.definitions.shift(),
    'crds',
    'CRD meshbindings.mesh-gateway.dev does not exist',
    'manifests/crds.yaml',
  ],
  [
    'a CRD without the version',
    all => {
      const [version] = (find(all.definitions, 'meshtailnets.mesh-gateway.dev')['spec'] as Json)[
        'versions'
      ] as Json[];
      set(version ?? {}, 'name', 'v1alpha0');
    },
    'crds',
    'CRD meshtailnets.mesh-gateway.dev does not serve v1alpha1',
    'manifests/crds.yaml',
  ],
  [
    'Gateway API',
    all => void all.definitions.pop(),
    'gateway-api',
    'httproutes',
    'install the CRDs of Gateway API',
  ],
  [
    'an old Kubernetes',
    all => void (all.kubernetes = [{ gitVersion: 'v1.30.4' }]),
    'kubernetes',
    'v1.30.4 is older than 1.31',
    'upgrade',
  ],
  [
    'RBAC of the operator',
    withoutRule('mesh-operator', 'statefulsets'),
    'rbac-operator',
    'ServiceAccount mesh-system/mesh-operator may not get statefulsets of apps in mesh-system, ',
    'kubectl apply --server-side --force-conflicts -f manifests/rbac.yaml',
  ],
  [
    'RBAC of the extension server',
    withoutRule('mesh-extension-server.mesh-system', 'endpointslices'),
    'rbac-extension-server',
    'ServiceAccount mesh-system/mesh-extension-server may not list endpointslices of discovery.k8s.io, watch ',
    'manifests/rbac.yaml',
  ],
  [
    'RBAC of Envoy Gateway',
    withoutRule('mesh-envoy-gateway.mesh-system', 'meshbindings/status'),
    'rbac-envoy-gateway',
    'may not update meshbindings/status of mesh-gateway.dev',
    'manifests/rbac.yaml',
  ],
  [
    'an operator without pods',
    all => set(find(all.deployments, 'mesh-operator'), 'status', {}),
    'operator',
    '0 of 2 pods of Deployment mesh-system/mesh-operator are available',
    'kubectl -n mesh-system describe pods -l app.kubernetes.io/name=mesh-operator',
  ],
  [
    'an extension server that is not installed',
    all =>
      void all.deployments.splice(all.deployments.indexOf(find(all.deployments, 'mesh-extension-server')), 1),
    'extension-server',
    'Deployment mesh-system/mesh-extension-server does not exist',
    'kubectl apply --server-side -k manifests',
  ],
  [
    'an image',
    all => {
      const found = status(find(all.pods, 'meshd-example-0'));
      set(found, 'image', 'tailscale/tailscale:none');
      set(found, 'state', { waiting: { reason: 'ImagePullBackOff', message: 'back-off' } });
    },
    'images',
    'container main of pod mesh-system/meshd-example-0 cannot get its image tailscale/tailscale:none (ImagePullBackOff)',
    'push the image',
  ],
  [
    'a pod without enough memory',
    all => crash(all, 'OOMKilled'),
    'pods',
    'container main of pod mesh-system/mesh-operator-1 does not stay up: OOMKilled, 7 restarts',
    'raise resources.limits.memory of operator',
  ],
  [
    'a pod that crashes',
    all => crash(all, 'Error'),
    'pods',
    'container main of pod mesh-system/mesh-operator-1 does not stay up: Error, 7 restarts',
    'kubectl -n mesh-system logs mesh-operator-1 -c main --previous',
  ],
  [
    'a pod without a node',
    all =>
      set(find(all.pods, 'meshd-example-0'), 'status.conditions', [
        {
          type: 'PodScheduled',
          status: 'False',
          reason: 'Unschedulable',
          message: '0/1 nodes are available',
        },
      ]),
    'pods',
    'no node can run pod mesh-system/meshd-example-0: 0/1 nodes are available',
    'add a node',
  ],
  [
    'a quota',
    all => {
      all.quotas = [{ metadata: { name: 'few' } }];
      set(find(all.statefulSets, 'meshd-example'), 'status.replicas', 1);
      const message =
        'create Pod meshd-example-1 failed: exceeded quota: few, requested: pods=1, used: pods=5';
      all.refusals = [{ involvedObject: { kind: 'StatefulSet', name: 'meshd-example' }, message }];
    },
    'quotas',
    'ResourceQuota mesh-system/few does not let pods of StatefulSet mesh-system/meshd-example be created: ',
    'kubectl -n mesh-system edit resourcequota few',
  ],
  [
    'a quota, for a Deployment',
    all => {
      all.quotas = [{ metadata: { name: 'few' } }];
      const message = 'pods "a" is forbidden: exceeded quota: few, requested: pods=1, used: pods=5';
      set(find(all.deployments, 'mesh-extension-server'), 'status.conditions', [
        { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message },
      ]);
    },
    'quotas',
    'ResourceQuota mesh-system/few does not let pods of Deployment mesh-system/mesh-extension-server',
    'kubectl -n mesh-system edit resourcequota few',
  ],
  [
    'clocks',
    all =>
      set(find(all.lease, 'mesh-operator'), 'metadata.managedFields', [{ time: '2026-11-26T11:55:00Z' }]),
    'clocks',
    'the clocks of the operator and the API server differ by 295 s',
    'synchronize the clocks',
  ],
  [
    'DNS without a ready pod',
    all => set(find(all.dnsPods, 'coredns-1'), 'status.conditions', []),
    'dns',
    "no pod of the cluster's DNS is ready (1 exist)",
    'kubectl -n kube-system describe pods -l k8s-app=kube-dns',
  ],
  [
    'DNS of another domain',
    all => void (all.dnsConfig = [{ data: { Corefile: '.:53 {\n  kubernetes corp.internal {\n  }\n}' } }]),
    'dns',
    'looked up as mesh-extension-server.mesh-system.svc.cluster.local, and the domain of the cluster is corp.internal',
    'set clusterDomain: corp.internal',
  ],
  [
    'a policy that blocks 5005',
    withoutPort('mesh-extension-server', 5005),
    'port-5005',
    'on port 5005: NetworkPolicy mesh-system/mesh-extension-server does not permit it',
    '  name: mesh-ingress-5005-from-envoy-gateway\n  namespace: mesh-system\n',
  ],
  [
    'a policy that blocks 1055',
    withoutPort('mesh-pods', 1055),
    'port-1055',
    'Envoy (pod envoy-gateway-system/envoy-default-public-1) cannot connect to mesh pods (pod mesh-system/meshd-example-0) on port 1055',
    'ports:\n        - {protocol: TCP, port: 1055}',
  ],
  [
    'a policy that blocks 9002',
    withoutPort('mesh-pods', 9002),
    'port-9002',
    'mesh-operator (pod mesh-system/mesh-operator-1) cannot connect to mesh pods',
    'port: 9002',
  ],
  [
    'a policy that blocks what Envoy Gateway sends',
    all =>
      all.policies.push({
        metadata: { name: 'deny', namespace: 'envoy-gateway-system' },
        spec: {
          podSelector: {},
          policyTypes: ['Egress'],
          egress: [{ ports: [{ protocol: 'UDP', port: 53 }, { port: 1055 }] }],
        },
      }),
    'port-5005',
    'on port 5005: NetworkPolicy envoy-gateway-system/deny does not permit it',
    'policyTypes: [Egress]',
  ],
  [
    'a policy that blocks DNS',
    all =>
      all.policies.push({
        metadata: { name: 'deny', namespace: 'mesh-system' },
        spec: {
          podSelector: {},
          policyTypes: ['Egress'],
          egress: [{ ports: [{ port: 1, endPort: 65_535 }] }],
        },
      }),
    'port-53',
    'cannot connect to DNS (pod kube-system/coredns-1) on port 53',
    'protocol: UDP',
  ],
  [
    'an old Envoy Gateway',
    all => {
      const containers = [{ image: 'registry.example.com:5000/gateway:v1.8.3@sha256:00' }];
      set(find(all.envoyGateways, 'envoy-gateway'), 'spec.template.spec.containers', containers);
    },
    'envoy-gateway',
    'which is older than 1.9',
    '--version v1.9.1',
  ],
  [
    'Envoy Gateway in another namespace',
    all => void (all.envoyGateways = []),
    'envoy-gateway',
    'Deployment envoy-gateway-system/envoy-gateway does not exist',
    '--envoy-gateway-namespace',
  ],
  [
    'Envoy Gateway without the hook',
    editConfig(/^ *backendResources:\n(.*\n){3}/m, ''),
    'hook',
    'no extensionManager in ConfigMap envoy-gateway-system/envoy-gateway-config has backendResources with kind MeshEndpoints',
    'kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway',
  ],
  [
    'Envoy Gateway without the Translation hook',
    editConfig('- Translation', '- Route'),
    'hook',
    'hooks.xdsTranslator.post of extensionManager lacks Translation',
    'helm upgrade eg',
  ],
  [
    'Envoy Gateway with a wrong port',
    editConfig('port: 5005', 'port: 5006'),
    'hook',
    'service of extensionManager is mesh-extension-server.mesh-system.svc.cluster.local:5006, and the extension server listens on mesh-extension-server.mesh-system.svc.cluster.local:5005',
    'helm upgrade eg',
  ],
  [
    'Envoy Gateway with a wrong host',
    editConfig('mesh-extension-server.mesh-system', 'mesh-extension-server.mesh'),
    'hook',
    'service of extensionManager is mesh-extension-server.mesh.svc.cluster.local:5005',
    'helm upgrade eg',
  ],
  [
    'another extension of Envoy Gateway that is away',
    editConfig('extensionManager:', `extensionManagers:\n- ${OTHER_EXTENSION}\n- name: mesh`),
    'hook',
    'no pod of Service ai/controller is ready, where the extension other listens on 1063: Envoy Gateway translates nothing until one is, whatever its failOpen is',
    'kubectl -n ai describe service controller',
  ],
  [
    'Envoy Gateway with a small message limit',
    editConfig('maxMessageSize: 100M', ''),
    'message-limit',
    'maxMessageSize of extensionManager is 4M, and MAX_MESSAGE_SIZE of the extension server 100M',
    'rollout restart',
  ],
  [
    'Envoy Gateway that was not restarted',
    all => {
      const entry = { time: '2026-11-26T10:30:00Z', fieldsV1: { 'f:data': {} } };
      set(find(all.envoyGatewayConfig, 'envoy-gateway-config'), 'metadata.managedFields', [entry]);
    },
    'restarted',
    'pod envoy-gateway-system/envoy-gateway-1 has started before the last change of ConfigMap',
    'kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway',
  ],
  [
    'a translation that is not reported',
    all => set(find(all.declared, 'public', 'MeshBinding'), 'status.ancestors', []),
    'translations',
    'Envoy Gateway has not reported in MeshBinding default/public',
  ],
  [
    'the Secret',
    tailnetWith('Authenticated', 'SecretNotFound', 'Secret mesh-oauth does not exist'),
    'secret',
    'MeshTailnet example: SecretNotFound: Secret mesh-oauth does not exist',
    'kubectl -n mesh-system create secret generic mesh-oauth --from-literal=client-id="$CLIENT_ID"',
  ],
  [
    'credentials',
    tailnetWith('Authenticated', 'CredentialsInvalid', 'refused'),
    'credentials',
    'CredentialsInvalid: refused',
    'create secret generic',
  ],
  [
    'a scope',
    tailnetWith('Authenticated', 'ScopeMissing', 'lacks devices:core'),
    'scopes',
    'ScopeMissing: lacks devices:core',
  ],
  [
    'a scope for join keys',
    tailnetWith('PoolReady', 'NotAuthenticated', 'lack the scope auth_keys'),
    'scopes-of-pool',
    'lack the scope auth_keys',
  ],
  [
    'another tailnet',
    tailnetWith('Authenticated', 'TailnetMismatch', 'belong to other.ts.net'),
    'tailnet',
    'TailnetMismatch: belong to other.ts.net',
  ],
  [
    'the control API',
    tailnetWith('Authenticated', 'Unreachable', 'no route'),
    'control-api',
    'Unreachable: no route',
  ],
  [
    'a tag',
    tailnetWith('PoolReady', 'KeyRejected', 'must have them in tagOwners'),
    'tags',
    'KeyRejected: must have them in tagOwners',
  ],
  [
    'a limit of the tailnet',
    tailnetWith('PoolReady', 'LimitReached', 'remove devices'),
    'tailnet-limits',
    'LimitReached: remove devices',
  ],
  [
    'an approval',
    tailnetWith('PoolReady', 'AwaitingApproval', 'approve the device'),
    'approvals',
    'AwaitingApproval: approve the device',
  ],
  [
    'an expired key',
    tailnetWith('PoolReady', 'KeyExpired', 'turn off key expiry'),
    'key-expiry',
    'KeyExpired: turn off key expiry',
  ],
  [
    'a pool',
    tailnetWith('PoolReady', 'CrashLoop', 'ends again'),
    'pool',
    'CrashLoop: ends again',
    'describe pods -l mesh-gateway.dev/tailnet=example',
  ],
  [
    'a tailnet that is missing',
    all => void (all.declared = all.declared.filter(each => each['kind'] !== 'MeshTailnet')),
    'tailnet',
    'there is no MeshTailnet',
    'kind: MeshTailnet',
  ],
  [
    'a CA that the operator refuses',
    all =>
      set(find(all.declared, 'web', 'MeshEndpoints'), 'status.conditions', [
        condition('Ready', 'False', 'InvalidReference', 'tls.caRef cannot be used'),
      ]),
    'references',
    'MeshEndpoints default/web: InvalidReference: tls.caRef cannot be used',
  ],
  [
    'an endpoint',
    all =>
      set(find(all.declared, 'web', 'MeshEndpoints'), 'status.conditions', [
        condition('Ready', 'False', 'NoHealthyEndpoints', 'no endpoint is healthy'),
      ]),
    'endpoints',
    'MeshEndpoints default/web: NoHealthyEndpoints: no endpoint is healthy',
  ],
  [
    'a listener that Envoy Gateway refuses',
    all =>
      set(find(all.declared, 'public', 'Gateway'), 'status.listeners', [
        { name: 'http', conditions: [condition('Conflicted', 'True', 'HostnameConflict', 'is not unique')] },
      ]),
    'listeners',
    'listener http of Gateway default/public: HostnameConflict: is not unique',
  ],
  [
    'a listener that a route names',
    all =>
      set(find(all.declared, 'web', 'HTTPRoute'), 'spec.parentRefs', [
        { name: 'public', sectionName: 'https' },
      ]),
    'routes',
    'HTTPRoute default/web: ListenerNotFound: ',
  ],
  [
    'a grant',
    all => {
      set(find(all.declared, 'web', 'HTTPRoute'), 'metadata.namespace', 'default');
      set(find(all.declared, 'web', 'HTTPRoute'), 'spec.rules', [
        {
          backendRefs: [
            { group: 'mesh-gateway.dev', kind: 'MeshEndpoints', name: 'web', namespace: 'shop', port: 8080 },
          ],
        },
      ]);
      set(find(all.declared, 'web', 'MeshEndpoints'), 'metadata.namespace', 'shop');
    },
    'routes',
    'HTTPRoute default/web: RefNotPermitted: ',
    'apiVersion: gateway.networking.k8s.io/v1beta1\nkind: ReferenceGrant',
  ],
  [
    'a CA that has expired',
    all =>
      set(find(all.declared, 'web', 'MeshEndpoints'), 'spec.endpoints', [
        endpoint({ protocol: 'HTTPS', tls: { ca: EXPIRED_CERTIFICATE } }),
      ]),
    'cas',
    'the CA certificate of endpoint web of MeshEndpoints default/web has expired on ',
    'replace it',
  ],
  [
    'an operator that does not lead',
    all => {
      const lease = find(all.lease, 'mesh-operator');
      set(lease, 'spec.renewTime', '2026-11-26T11:00:00.000000Z');
      set(lease, 'metadata.managedFields', [{ time: '2026-11-26T11:00:00Z' }]);
    },
    'leader',
    'no operator has led since 2026-11-26T11:00:00.000000Z, so nothing is reconciled',
    'kubectl -n mesh-system logs deployment/mesh-operator',
  ],
];
