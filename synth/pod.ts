import { k8s } from 'cdk8s-plus-28';
import { COMPONENTS, PORTS, selectorOf } from '../src/api/names.ts';
import type { Component } from '../src/api/names.ts';
import type { InstallationResources } from './generated/types.ts';
import { environmentOf, POD_FIELDS } from './environment.ts';
import { imageOf, labelsOf } from './installation.ts';
import type { Install } from './installation.ts';

/** What differs between the pods of the operator and the extension server. */
export type PodOptions = {
  readonly component: Component;
  readonly container: string;
  /** The command of mesh-gateway that it runs. */
  readonly command: string;
  readonly resources: InstallationResources;
  readonly ports: readonly (keyof typeof PORTS)[];
  readonly readiness: k8s.Probe;
  readonly graceSeconds: number;
  readonly lifecycle?: k8s.Lifecycle;
};

/** The pod template of the operator or the extension server, without any privilege. */
export function podTemplate(install: Install, options: PodOptions): k8s.PodTemplateSpec {
  const { podAnnotations, scheduling } = install.installation;
  const { nodeSelector, affinity, tolerations, priorityClassName } = scheduling;
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
      ...(affinity ? { affinity: affinity as k8s.Affinity } : {}),
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
      ...Object.entries(POD_FIELDS).map(([name, fieldPath]) => ({
        name,
        valueFrom: { fieldRef: { fieldPath } },
      })),
      ...variablesOf(environmentOf(install, options.component)),
      // In the order of a chart's values, which Helm sorts.
      ...variablesOf(install.installation[options.component].extraEnv ?? {}).sort((one, other) =>
        one.name < other.name ? -1 : 1,
      ),
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

function variablesOf(values: Readonly<Record<string, string>>) {
  return Object.entries(values).map(([name, value]) => ({ name, value: literally(value) }));
}

/** Escapes $(NAME), which Kubernetes would replace by another variable. */
function literally(value: string): string {
  return value.replaceAll('$', '$$$$');
}

function resourcesOf({ requests, limits }: InstallationResources): k8s.ResourceRequirements {
  const quantities = ({ cpu, memory }: { readonly cpu: string; readonly memory: string }) => ({
    cpu: k8s.Quantity.fromString(cpu),
    memory: k8s.Quantity.fromString(memory),
  });
  return { requests: quantities(requests), limits: quantities(limits) };
}
