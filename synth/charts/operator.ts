import { k8s } from 'cdk8s-plus-28';
import type { Construct } from 'constructs';
import { COMPONENTS, OPERATOR_CONTAINER, PORTS, selectorOf } from '../../src/api/names.ts';
import { labelsOf } from '../installation.ts';
import type { Install } from '../installation.ts';
import { podTemplate } from '../pod.ts';

/** The operator: Deployment, Service for its metrics, and disruption budget. */
export function addOperator(chart: Construct, install: Install): void {
  const metadata = { name: COMPONENTS.operator, labels: { ...labelsOf(install, 'operator') } };
  const selector = { ...selectorOf('operator') };
  const { operator } = install.installation;
  new k8s.KubeDeployment(chart, 'deployment', {
    metadata,
    spec: {
      replicas: operator.replicas,
      selector: { matchLabels: selector },
      // The new pod waits for the lease while the old one still holds it.
      strategy: {
        type: 'RollingUpdate',
        rollingUpdate: {
          maxSurge: k8s.IntOrString.fromNumber(1),
          maxUnavailable: k8s.IntOrString.fromNumber(0),
        },
      },
      template: podTemplate(install, {
        component: 'operator',
        container: OPERATOR_CONTAINER,
        command: 'operator',
        resources: operator.resources,
        ports: ['metrics', 'health'],
        readiness: {
          httpGet: { path: '/readyz', port: k8s.IntOrString.fromString('health') },
          periodSeconds: 5,
          timeoutSeconds: 3,
        },
        graceSeconds: 30,
      }),
    },
  });
  new k8s.KubeService(chart, 'service', {
    metadata,
    spec: {
      selector,
      ports: [{ name: 'metrics', port: PORTS.metrics, targetPort: k8s.IntOrString.fromString('metrics') }],
    },
  });
  new k8s.KubePodDisruptionBudget(chart, 'disruption', {
    metadata,
    spec: { maxUnavailable: k8s.IntOrString.fromNumber(1), selector: { matchLabels: selector } },
  });
}
