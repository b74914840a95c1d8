import { k8s } from 'cdk8s-plus-28';
import { COMPONENTS } from '../src/api/names.ts';
import type { InstallationResources } from './generated/types.ts';
import { extensionServerAddress, imageOf, labelsOf, PORTS, selectorOf } from './installation.ts';
import type { Component, Install } from './installation.ts';

/** What differs between the pods of our processes. */
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

/** The template of the pods of one of our processes: it may do nothing but run. */
export function podTemplate(install: Install, wish: PodOptions): k8s.PodTemplateSpec {
  const { nodeSelector, tolerations, priorityClassName } = install.installation.scheduling;
  return {
    metadata: { labels: { ...labelsOf(install, wish.component) } },
    spec: {
      serviceAccountName: COMPONENTS[wish.component],
      automountServiceAccountToken: true,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: USER,
        runAsGroup: USER,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      terminationGracePeriodSeconds: wish.graceSeconds,
      topologySpreadConstraints: ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map(
        topologyKey => ({
          maxSkew: 1,
          topologyKey,
          // Few nodes are no reason not to run.
          whenUnsatisfiable: 'ScheduleAnyway',
          labelSelector: { matchLabels: { ...selectorOf(wish.component) } },
        }),
      ),
      ...(nodeSelector ? { nodeSelector } : {}),
      ...(tolerations ? { tolerations: [...tolerations] } : {}),
      ...(priorityClassName === undefined ? {} : { priorityClassName }),
      ...(install.installation.image.pullSecrets
        ? { imagePullSecrets: install.installation.image.pullSecrets.map(name => ({ name })) }
        : {}),
      containers: [containerOf(install, wish)],
    },
  };
}

/** The user in the image, which is nobody in particular. */
const USER = 65_532;

function containerOf(install: Install, wish: PodOptions): k8s.Container {
  return {
    name: wish.container,
    image: imageOf(install),
    imagePullPolicy: install.installation.image.pullPolicy,
    args: [wish.command],
    env: [
      ...['namespace', 'name'].map(field => ({
        name: `POD_${field.toUpperCase()}`,
        valueFrom: { fieldRef: { fieldPath: `metadata.${field}` } },
      })),
      ...Object.entries({ ...sharedEnvironment(install), ...wish.environment }).map(([name, value]) => ({
        name,
        value: literally(value),
      })),
    ],
    ports: wish.ports.map(name => ({ name, containerPort: PORTS[name], protocol: 'TCP' })),
    readinessProbe: wish.readiness,
    // Asks only whether the event loop turns: what is missing elsewhere is not mended by a restart.
    livenessProbe: {
      httpGet: { path: '/healthz', port: k8s.IntOrString.fromString('health') },
      periodSeconds: 10,
      timeoutSeconds: 5,
      failureThreshold: 3,
    },
    ...(wish.lifecycle ? { lifecycle: wish.lifecycle } : {}),
    resources: resourcesOf(wish.resources),
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      capabilities: { drop: ['ALL'] },
    },
  };
}

/** Kubernetes puts other variables where a value says $(NAME), and one $ for two. */
function literally(value: string): string {
  return value.replaceAll('$', '$$$$');
}

/** What both processes are told, as both compute what the clusters of a Gateway must be. */
function sharedEnvironment(install: Install): Readonly<Record<string, string>> {
  return {
    DATA_PATH: install.installation.dataPath,
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
