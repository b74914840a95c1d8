import { k8s } from 'cdk8s-plus-28';
import { COMPONENTS, PORTS, selectorOf } from '../src/api/names.ts';
import type { Component } from '../src/api/names.ts';
import type { InstallationResources } from './generated/types.ts';
import { extensionServerAddress, imageOf, labelsOf } from './installation.ts';
import type { Install } from './installation.ts';

/** What differs between the pods of the operator and the extension server. */
export type PodOptions = {
  readonly component: Component;
  readonly container: string;
  /** The command of mesh-gateway that it runs. */
  readonly command: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly resources: InstallationResources;
  readonly ports: readonly (keyof typeof PORTS)[];
  readonly readiness: k8s.Probe;
  readonly graceSeconds: number;
  readonly lifecycle?: k8s.Lifecycle;
};

/** The pod template of the operator or the extension server, without any privilege. */
export function podTemplate(install: Install, options: PodOptions): k8s.PodTemplateSpec {
  const { podAnnotations, scheduling } = install.installation;
  const { nodeSelector, tolerations, priorityClassName } = scheduling;
  return {
    metadata: {
      labels: { ...labelsOf(install, options.component) },
      ...(podAnnotations ? { annotations: podAnnotations } : {}),
    },
    spec: {
      serviceAccountName: COMPONENTS[options.component],
      automountServiceAccountToken: true,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: USER,
        runAsGroup: USER,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      terminationGracePeriodSeconds: options.graceSeconds,
      topologySpreadConstraints: ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map(
        topologyKey => ({
          maxSkew: 1,
          topologyKey,
          // A cluster of few nodes must not block scheduling.
          whenUnsatisfiable: 'ScheduleAnyway',
          labelSelector: { matchLabels: { ...selectorOf(options.component) } },
        }),
      ),
      ...(nodeSelector ? { nodeSelector } : {}),
      ...(tolerations ? { tolerations: [...tolerations] } : {}),
      ...(priorityClassName === undefined ? {} : { priorityClassName }),
      ...(install.installation.image.pullSecrets
        ? { imagePullSecrets: install.installation.image.pullSecrets.map(name => ({ name })) }
        : {}),
      containers: [containerOf(install, options)],
    },
  };
}

/** The unprivileged user of the image. */
const USER = 65_532;

function containerOf(install: Install, options: PodOptions): k8s.Container {
  return {
    name: options.container,
    image: imageOf(install),
    imagePullPolicy: install.installation.image.pullPolicy,
    args: [options.command],
    env: [
      ...['namespace', 'name'].map(field => ({
        name: `POD_${field.toUpperCase()}`,
        valueFrom: { fieldRef: { fieldPath: `metadata.${field}` } },
      })),
      ...Object.entries({ ...sharedEnvironment(install), ...options.environment }).map(([name, value]) => ({
        name,
        value: literally(value),
      })),
    ],
    ports: options.ports.map(name => ({ name, containerPort: PORTS[name], protocol: 'TCP' })),
    readinessProbe: options.readiness,
    // Checks only that the event loop runs: a restart does not repair what is missing elsewhere.
    livenessProbe: {
      httpGet: { path: '/healthz', port: k8s.IntOrString.fromString('health') },
      periodSeconds: 10,
      timeoutSeconds: 5,
      failureThreshold: 3,
    },
    ...(options.lifecycle ? { lifecycle: options.lifecycle } : {}),
    resources: resourcesOf(options.resources),
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      capabilities: { drop: ['ALL'] },
    },
  };
}

/** Escapes $(NAME), which Kubernetes would replace by another variable. */
function literally(value: string): string {
  return value.replaceAll('$', '$$$$');
}

/** Environment variables that both processes must share, since both compute the clusters of a Gateway. */
function sharedEnvironment(install: Install): Readonly<Record<string, string>> {
  const { dataPath, externalTargets, refusedAddresses } = install.installation;
  return {
    DATA_PATH: dataPath,
    ...(externalTargets.allow ? { EXTERNAL_TARGETS_ALLOW: externalTargets.allow.join() } : {}),
    ...(refusedAddresses ? { REFUSED_ADDRESSES: refusedAddresses.join() } : {}),
    EXTENSION_SERVER_ADDRESS: extensionServerAddress(install),
    METRICS_ADDRESS: `:${PORTS.metrics}`,
    HEALTH_ADDRESS: `:${PORTS.health}`,
  };
}

function resourcesOf({ requests, limits }: InstallationResources): k8s.ResourceRequirements {
  const quantities = ({ cpu, memory }: { readonly cpu: string; readonly memory: string }) => ({
    cpu: k8s.Quantity.fromString(cpu),
    memory: k8s.Quantity.fromString(memory),
  });
  return { requests: quantities(requests), limits: quantities(limits) };
}
