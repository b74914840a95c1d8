import { k8s } from 'cdk8s-plus-28';
import type { Construct } from 'constructs';
import { COMPONENTS, PORTS, selectorOf } from '../../src/api/names.ts';
import { labelsOf } from '../installation.ts';
import type { Install } from '../installation.ts';
import { podTemplate } from '../pod.ts';

/** How long after its deletion a pod still receives new calls, until all clients have seen it. */
const HEARD_OF_SECONDS = 5;

/** How long the process takes at most from the signal to its exit. */
const DRAIN_SECONDS = 25;

/** The extension server: Deployment, Service, autoscaler and disruption budget. Envoy Gateway needs it at all times. */
export function addExtensionServer(chart: Construct, install: Install): void {
  const metadata = { name: COMPONENTS.extensionServer, labels: { ...labelsOf(install, 'extensionServer') } };
  const selector = { ...selectorOf('extensionServer') };
  new k8s.KubeDeployment(chart, 'deployment', { metadata, spec: deploymentOf(install) });
  new k8s.KubeService(chart, 'service', {
    metadata,
    spec: {
      selector,
      ports: [
        {
          name: 'grpc',
          port: PORTS.grpc,
          targetPort: k8s.IntOrString.fromString('grpc'),
          appProtocol: 'kubernetes.io/h2c',
        },
        { name: 'metrics', port: PORTS.metrics, targetPort: k8s.IntOrString.fromString('metrics') },
      ],
    },
  });
  addScaling(chart, install, metadata);
  new k8s.KubePodDisruptionBudget(chart, 'disruption', {
    metadata,
    spec: { maxUnavailable: k8s.IntOrString.fromNumber(1), selector: { matchLabels: selector } },
  });
}

/** Without replicas: the autoscaler sets them, and each apply would reset them. */
function deploymentOf(install: Install): k8s.DeploymentSpec {
  const { extensionServer } = install.installation;
  return {
    selector: { matchLabels: { ...selectorOf('extensionServer') } },
    strategy: {
      type: 'RollingUpdate',
      rollingUpdate: {
        maxSurge: k8s.IntOrString.fromNumber(1),
        maxUnavailable: k8s.IntOrString.fromNumber(0),
      },
    },
    template: podTemplate(install, {
      component: 'extensionServer',
      container: 'extension-server',
      command: 'extension-server',
      resources: extensionServer.resources,
      ports: ['grpc', 'metrics', 'health'],
      readiness: { grpc: { port: PORTS.grpc }, periodSeconds: 5, timeoutSeconds: 3 },
      lifecycle: { preStop: { exec: { command: ['node', '-e', WAIT] } } },
      graceSeconds: HEARD_OF_SECONDS + DRAIN_SECONDS + 5,
    }),
  };
}

/** The image has no shell, and so no sleep. */
const WAIT = `setTimeout(() => {}, ${HEARD_OF_SECONDS * 1000})`;

function addScaling(chart: Construct, install: Install, metadata: k8s.ObjectMeta): void {
  const { minReplicas, maxReplicas, targetCPUPercent } = install.installation.extensionServer.autoscaling;
  new k8s.KubeHorizontalPodAutoscalerV2(chart, 'autoscaler', {
    metadata,
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: COMPONENTS.extensionServer },
      minReplicas,
      maxReplicas,
      metrics: [
        {
          type: 'Resource',
          resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: targetCPUPercent } },
        },
      ],
    },
  });
}
