import { createHash } from 'node:crypto';
import { API_VERSION, GROUP } from '../../../api/generated/kinds.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { MANAGED_BY, MESH_POD, poolName, RELAY, relayName } from '../../../api/names.ts';
import { meshdContainer, PRE_STOP_SECONDS, relayContainer, WRITABLE } from './containers.ts';

type MeshTailnet = Kinds['MeshTailnet'];
type Pool = MeshTailnet['spec']['pool'];
type Texts = Readonly<Record<string, string>>;

/** What the objects of a pool are made from. */
export type PoolOptions = {
  readonly tailnet: MeshTailnet;
  /** The installation id; undefined for a pool that a user runs. */
  readonly installation: string | undefined;
  /** The namespace of the objects. */
  readonly namespace: string;
  /** For fields that spec.pool does not set. */
  readonly defaults: Pick<
    Pool,
    'image' | 'resources' | 'nodeSelector' | 'tolerations' | 'priorityClassName' | 'extraEnv'
  > & {
    /** The names of the Secrets with which nodes pull the images. */
    readonly imagePullSecrets?: readonly string[];
  };
  /** The control API of this tailnet. */
  readonly controlURL: string;
  /** CA certificates (PEM) that mesh pods trust for the login server, beside those of their system. */
  readonly ca: string | undefined;
  /** The image of the container relay, the front of the pods; undefined where they have none. */
  readonly relayImage: string | undefined;
  readonly replicas: number;
  /** The number of ordinals that have ever had a Secret. */
  readonly ordinals: number;
};

/** Annotations of the StatefulSet of a pool. */
export const POOL_ANNOTATIONS = {
  /** A hash of all objects that were applied together. */
  specHash: `${GROUP}/spec-hash`,
  /** The number of ordinals that have ever had a Secret. */
  ordinals: `${GROUP}/members`,
} as const;

/** The objects of a managed pool. Apply `supporting` first: the pods need its ServiceAccount and ConfigMap. */
export function poolObjects(options: PoolOptions) {
  const supporting = [
    ...accountObjects(options),
    ...serviceObjects(options),
    ...relayObjects(options),
    ...authorityObjects(options),
  ];
  const object = statefulSet(options);
  const hash = hashOf(JSON.stringify([supporting, object]));
  const { metadata } = object;
  const annotations = { ...metadata.annotations, [POOL_ANNOTATIONS.specHash]: hash };
  return { supporting, statefulSet: { ...object, metadata: { ...metadata, annotations } } };
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/**
 * The metadata of an object of a pool; Kubernetes' garbage collector deletes the object together with the MeshTailnet, unless
 * that is one of a file.
 */
export function metadataOf(
  { tailnet: { metadata } }: Pick<PoolOptions, 'tailnet'>,
  name = poolName(metadata.name),
) {
  const { uid } = metadata;
  const owner = { apiVersion: API_VERSION, kind: 'MeshTailnet', name: metadata.name };
  return {
    name,
    labels: labelsOf(metadata.name),
    ...(uid === undefined ? {} : { ownerReferences: [{ ...owner, uid, controller: true as const }] }),
  };
}

/** Without a version: an upgrade of the operator must not replace the pods. */
function labelsOf(tailnet: string): Texts {
  return {
    ...selectorOf(tailnet),
    'app.kubernetes.io/instance': 'mesh-gateway',
    'app.kubernetes.io/component': 'mesh-pods',
    ...MANAGED_BY,
  };
}

function selectorOf(tailnet: string): Texts {
  return { ...MESH_POD.labels, [MESH_POD.tailnetLabel]: tailnet };
}

const RBAC = 'rbac.authorization.k8s.io';

/** The ServiceAccount of the pods, which may use their own Secrets, watch the targets of their relays, and nothing else. */
function accountObjects(options: PoolOptions) {
  const metadata = metadataOf(options);
  const { name } = metadata;
  const secrets = Array.from({ length: options.ordinals }, (_, ordinal) => `${name}-${ordinal}`);
  const targets = options.relayImage === undefined ? [] : [relayName(options.tailnet.metadata.name)];
  const rules = [
    { resources: ['secrets'], resourceNames: secrets, verbs: ['get', 'patch', 'update'] },
    { resources: ['configmaps'], resourceNames: targets, verbs: ['list', 'watch'] },
  ]
    // A rule without resourceNames would allow the use of all objects of the kind.
    .filter(({ resourceNames }) => resourceNames.length > 0)
    .map(rule => ({ apiGroups: [''], ...rule }));
  return [
    {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata,
      automountServiceAccountToken: false,
      // Pods get them when they are created; in the template a change would replace all of them.
      imagePullSecrets: (options.defaults.imagePullSecrets ?? []).map(secret => ({ name: secret })),
    },
    { apiVersion: `${RBAC}/v1`, kind: 'Role', metadata, rules },
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: RBAC, kind: 'Role', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace: options.namespace }],
    },
  ] as const;
}

/** The Service that Envoys connect to, the one of the StatefulSet, and the PodDisruptionBudget. */
function serviceObjects(options: PoolOptions) {
  const metadata = metadataOf(options);
  const selector = selectorOf(options.tailnet.metadata.name);
  const ports = (['proxy', 'metrics'] as const).map(name => ({
    name,
    port: MESH_POD.ports[name],
    targetPort: name,
    protocol: 'TCP',
  }));
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      // Without a relay, pods have the proxy on one of their addresses.
      spec: {
        ...(options.relayImage === undefined ? {} : { ipFamilyPolicy: 'PreferDualStack' }),
        selector,
        ports: ports.slice(0, 1),
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: metadataOf(options, headlessName(options)),
      spec: { clusterIP: 'None', publishNotReadyAddresses: true, selector, ports },
    },
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata,
      spec: {
        maxUnavailable: 1,
        unhealthyPodEvictionPolicy: 'AlwaysAllow',
        selector: { matchLabels: selector },
      },
    },
  ] as const;
}

/** The Service whose EndpointSlices name the ready relays; Envoys get their addresses by EDS. */
function relayObjects(options: PoolOptions) {
  if (options.relayImage === undefined) return [];
  const { name } = options.tailnet.metadata;
  const spec = { clusterIP: 'None', selector: { ...selectorOf(name), ...RELAY_LABEL } };
  return [
    { apiVersion: 'v1', kind: 'Service', metadata: metadataOf(options, relayName(name)), spec },
  ] as const;
}

const RELAY_LABEL: Texts = { [RELAY.label]: 'true' };

function headlessName({ tailnet }: PoolOptions): string {
  return `${poolName(tailnet.metadata.name)}-pods`;
}

const CA_FILE = 'ca.crt';

function authorityObjects(options: PoolOptions) {
  if (options.ca === undefined) return [];
  const metadata = metadataOf(options);
  return [{ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { [CA_FILE]: options.ca } }] as const;
}

function statefulSet(options: PoolOptions) {
  const metadata = metadataOf(options);
  const annotations: Texts = { [POOL_ANNOTATIONS.ordinals]: String(options.ordinals) };
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { ...metadata, annotations },
    spec: {
      replicas: options.replicas,
      serviceName: headlessName(options),
      podManagementPolicy: 'Parallel',
      // The operator deletes outdated pods itself, only while another mesh pod is ready.
      updateStrategy: { type: 'OnDelete' },
      selector: { matchLabels: selectorOf(options.tailnet.metadata.name) },
      template: {
        metadata: {
          labels: { ...metadata.labels, ...(options.relayImage === undefined ? {} : RELAY_LABEL) },
          // tailscaled reads certificates once, so a changed CA needs new pods.
          ...(options.ca === undefined ? {} : { annotations: { [`${GROUP}/ca-hash`]: hashOf(options.ca) } }),
        },
        spec: podSpec(options),
      },
    },
  } as const;
}

const USER = 1000;
/** containerboot withdraws services for up to 25 s before it stops tailscaled. */
const STOP_SECONDS = 35;

function podSpec(options: PoolOptions) {
  const { tailnet, defaults } = options;
  const { pool } = tailnet.spec;
  const { nodeSelector, tolerations, priorityClassName } = { ...defaults, ...pool };
  const name = poolName(tailnet.metadata.name);
  return {
    serviceAccountName: name,
    // containerboot reads and writes the Secret of its pod.
    automountServiceAccountToken: true,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: USER,
      runAsGroup: USER,
      fsGroup: USER,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    terminationGracePeriodSeconds: PRE_STOP_SECONDS + STOP_SECONDS,
    topologySpreadConstraints: ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map(topologyKey => ({
      maxSkew: 1,
      topologyKey,
      whenUnsatisfiable: 'ScheduleAnyway',
      labelSelector: { matchLabels: selectorOf(tailnet.metadata.name) },
    })),
    ...(nodeSelector ? { nodeSelector } : {}),
    ...(tolerations ? { tolerations } : {}),
    ...(priorityClassName === undefined ? {} : { priorityClassName }),
    containers: [
      meshdContainer(options),
      ...(options.relayImage === undefined ? [] : [relayContainer(options, options.relayImage)]),
    ],
    volumes: [
      ...WRITABLE.map(({ name: volume }) => ({ name: volume, emptyDir: {} })),
      ...(options.ca === undefined ? [] : [{ name: 'ca', configMap: { name } }]),
    ],
  };
}
