import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { envoyGatewayAccess } from '../../../src/api/envoy-gateway.ts';
import { kinds } from '../../../src/api/generated/kinds.ts';
import { operatorAccess } from '../../../src/controllers/registry.ts';
import { SERVED } from '../../../src/kubernetes/served-kinds.ts';
import { servedObjects } from '../../../src/tools/check/objects.ts';
import { missingByRoles, rightsOf } from '../../../src/tools/doctor/access.ts';
import type { Account, Right } from '../../../src/tools/doctor/access.ts';
import { ENVOY_POD } from '../../../src/api/names.ts';
import type { Observed, Reading } from '../../../src/tools/doctor/observed.ts';
import { extensionServerAccess } from '../../../src/traffic/access.ts';
import type { ResourceKind } from '../../../src/api/key.ts';
import { gatewayObject, meshBackend, named, openGateway, route } from '../declared.ts';
import { PROJECT } from '../lab/command-line.ts';
import { endpoint, meshBinding, meshEndpoints, meshTailnet } from '../objects.ts';

/** A JSON object that a test may break. */
export type Json = { [name: string]: unknown };

type ReadingName = {
  [Name in keyof Observed]: Observed[Name] extends Reading ? Name : never;
}[keyof Observed];

/** The objects of an installation, by where the doctor reads them. */
export type Installation = Record<ReadingName | 'declared' | 'roles', Json[]>;

/** The time of day in tests. */
export const NOW = new Date('2026-11-26T12:00:00Z');

const OWN = 'mesh-system';
const GATEWAY = 'envoy-gateway-system';

function documentsIn(path: string): Json[] {
  return parseAllDocuments(readFileSync(join(PROJECT, path), 'utf8')).map(
    document => document.toJS() as Json,
  );
}

/** The objects of a cluster in which all works, from the manifests that users apply. */
export function healthyInstallation(): Installation {
  return structuredClone(HEALTHY);
}

function readInstallation(): Installation {
  const manifests = readdirSync(join(PROJECT, 'dist/manifests'))
    .filter(name => name.endsWith('.yaml') && !['crds.yaml', 'kustomization.yaml'].includes(name))
    .flatMap(name => documentsIn(`dist/manifests/${name}`));
  const ofKind = (kind: string) => manifests.filter(each => each['kind'] === kind);
  const [values] = documentsIn('dist/manifests/envoy-gateway/config-map.yaml');
  return {
    kubernetes: [{ gitVersion: 'v1.36.3' }],
    definitions: [
      ...Object.values(kinds).flatMap(({ plural }) =>
        documentsIn(`dist/crds/${plural}.mesh-gateway.dev.yaml`),
      ),
      {
        metadata: {
          name: 'httproutes.gateway.networking.k8s.io',
          annotations: { 'gateway.networking.k8s.io/bundle-version': 'v1.6.1' },
        },
      },
    ],
    deployments: ofKind('Deployment').map(each => ({
      ...each,
      spec: { replicas: 2, ...(each['spec'] as Json) },
      status: { availableReplicas: 2 },
    })),
    statefulSets: [
      { metadata: { name: 'meshd-example', namespace: OWN }, spec: { replicas: 2 }, status: { replicas: 2 } },
    ],
    pods: [
      pod('mesh-operator-1', OWN, { 'app.kubernetes.io/name': 'mesh-operator', ...INSTANCE }),
      pod('mesh-extension-server-1', OWN, { 'app.kubernetes.io/name': 'mesh-extension-server', ...INSTANCE }),
      pod('meshd-example-0', OWN, {
        ...{ 'app.kubernetes.io/name': 'mesh-endpoint', 'mesh-gateway.dev/tailnet': 'example' },
      }),
    ],
    quotas: [],
    refusals: [],
    lease: [
      {
        metadata: { name: 'mesh-operator', managedFields: [{ time: '2026-11-26T11:59:55Z' }] },
        spec: {
          ...{ holderIdentity: 'mesh-operator-1', leaseDurationSeconds: 15 },
          renewTime: '2026-11-26T11:59:55.400000Z',
        },
      },
    ],
    trust: [{ data: {} }],
    envoyGateways: [
      {
        metadata: { name: 'envoy-gateway', namespace: GATEWAY },
        spec: { template: { spec: { containers: [{ image: 'docker.io/envoyproxy/gateway:v1.9.1' }] } } },
        status: { availableReplicas: 1 },
      },
    ],
    envoyGatewayPods: [pod('envoy-gateway-1', GATEWAY, { 'control-plane': 'envoy-gateway' })],
    envoyGatewayConfig: [
      {
        metadata: {
          name: 'envoy-gateway-config',
          managedFields: [{ time: '2026-11-26T09:00:00Z', fieldsV1: { 'f:data': {} } }],
        },
        data: values?.['data'],
      },
    ],
    envoys: [pod('envoy-default-public-1', GATEWAY, { ...ENVOY_POD.labels, ...OWNER })],
    policies: ofKind('NetworkPolicy'),
    dnsPods: [pod('coredns-1', 'kube-system', { 'k8s-app': 'kube-dns' })],
    dnsConfig: [
      { data: { Corefile: '.:53 {\n    kubernetes cluster.local in-addr.arpa ip6.arpa {\n    }\n}\n' } },
    ],
    roles: manifests.filter(({ apiVersion }) => apiVersion === 'rbac.authorization.k8s.io/v1'),
    declared: declaredObjects(),
  };
}

const OWNER = {
  'gateway.envoyproxy.io/owning-gateway-namespace': 'default',
  'gateway.envoyproxy.io/owning-gateway-name': 'public',
};

const INSTANCE = { 'app.kubernetes.io/instance': 'mesh-gateway' };

function pod(name: string, namespace: string, labels: Readonly<Record<string, string>>): Json {
  return {
    metadata: { name, namespace, labels },
    spec: { containers: [{ name: 'main' }] },
    status: {
      podIP: '10.244.0.7',
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [
        {
          name: 'main',
          ready: true,
          restartCount: 0,
          state: { running: { startedAt: '2026-11-26T10:00:00Z' } },
        },
      ],
    },
  };
}

/** Those of a MeshTailnet. */
export const TAILNET_CONDITIONS = ['Ready', 'Authenticated', 'PoolReady', 'NetworkPoliciesEnforced'] as const;

/** A condition that the operator has written about the present spec. */
export function condition(type: string, status: string, reason: string, message = ''): Json {
  return { type, status, reason, message, observedGeneration: 1, lastTransitionTime: '2026-11-26T11:00:00Z' };
}

function declaredObjects(): Json[] {
  const namespaces = ['default', OWN, GATEWAY, 'kube-system'].map(name =>
    named({ apiVersion: 'v1', kind: 'Namespace' }, name),
  );
  const pool = { ready: 2, desired: 2, proxyAddress: '10.96.0.7:1055' };
  const tailnetConditions = TAILNET_CONDITIONS.map(type => condition(type, 'True', type));
  const accepted = { conditions: [condition('Accepted', 'True', 'Accepted')] };
  const ancestorRef = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'public' };
  const ancestors = [
    { ancestorRef, controllerName: 'gateway.envoyproxy.io/gatewayclass-controller', ...accepted },
  ];
  const listeners = [{ name: 'http', conditions: [condition('Programmed', 'True', 'Programmed')] }];
  const generation = { generation: 1 };
  return [
    ...namespaces,
    { ...named(meshTailnet(), 'example', generation), status: { pool, conditions: tailnetConditions } },
    {
      ...named(meshEndpoints({ endpoints: [endpoint()] }), 'default/web', generation),
      status: { conditions: [condition('Ready', 'True', 'EndpointsConfigured')] },
    },
    { ...named(meshBinding({ attempt: 0 }), 'default/public', generation), status: { ancestors } },
    gatewayObject('GatewayClass', 'mesh', { controllerName: ancestors[0]?.controllerName }),
    { ...openGateway('default/public'), status: { listeners } },
    route('HTTPRoute', 'default/web', { rules: [{ backendRefs: [meshBackend()] }] }),
  ] as Json[];
}

/** The accounts of an installation. */
export const ACCOUNTS: readonly Account[] = [
  {
    ...{ check: 'rbac-operator', namespace: OWN, name: 'mesh-operator' },
    rights: rightsOf(operatorAccess, OWN, [GATEWAY]),
  },
  {
    ...{ check: 'rbac-extension-server', namespace: OWN, name: 'mesh-extension-server' },
    rights: rightsOf(extensionServerAccess, 'mesh-system'),
  },
  {
    ...{ check: 'rbac-envoy-gateway', namespace: GATEWAY, name: 'envoy-gateway' },
    rights: rightsOf({ cluster: envoyGatewayAccess, own: [] }, ''),
  },
];

/** What the doctor reads in an installation; some of it may not be read, for a reason. */
export function observedIn(
  { declared, roles, ...readings }: Installation,
  unread: Partial<Record<ReadingName | 'access', string>> = {},
): Observed {
  const { access: why, ...others } = unread;
  const read = Object.entries(readings).map(([name, items]) => {
    const reason = others[name as ReadingName];
    const reading: Reading = reason === undefined ? { items } : { why: reason };
    return [name, reading] as const;
  });
  return {
    ...{ now: NOW, namespace: 'mesh-system', envoyGatewayNamespace: 'envoy-gateway-system' },
    ...(Object.fromEntries(read) as Record<ReadingName, Reading>),
    fronts: [],
    access: ACCOUNTS.map(account => ({
      account,
      reading: why === undefined ? { missing: missingIn(roles, account) } : { why },
    })),
    declarations: servedObjects(declared, new Set(Object.keys(SERVED) as ResourceKind[])),
  };
}

/** The rights that an account lacks. */
export function missingIn(roles: readonly Json[], account: Account): readonly Right[] {
  const ofKind = (kind: string) => roles.filter(each => each['kind'] === kind);
  return missingByRoles(account, {
    clusterRoles: ofKind('ClusterRole'),
    clusterRoleBindings: ofKind('ClusterRoleBinding'),
    roles: ofKind('Role'),
    roleBindings: ofKind('RoleBinding'),
  });
}

/** An object of a list, by its kind if that is given, and its name. */
export function find(list: readonly Json[], name: string, kind?: string): Json {
  const found = list.find(
    each =>
      (each['metadata'] as Json | undefined)?.['name'] === name &&
      (kind === undefined || each['kind'] === kind),
  );
  if (!found) throw new Error(`there is no ${kind ?? 'object'} ${name}`);
  return found;
}

/** Sets a field of an object. */
export function set(object: Json, path: string, value: unknown): void {
  const steps = path.split('.');
  const last = steps.pop() ?? '';
  const parent = steps.reduce((inner, step) => (inner[step] ??= {}) as Json, object);
  parent[last] = value;
}

const HEALTHY = readInstallation();
