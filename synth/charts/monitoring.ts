import { ApiObject } from 'cdk8s';
import { k8s } from 'cdk8s-plus-28';
import type { Construct } from 'constructs';
import { COMPONENTS, MESH_POD, RELAY, selectorOf } from '../../src/api/names.ts';
import { labelsOf } from '../installation.ts';
import type { Install } from '../installation.ts';
import { alerts } from '../monitoring/alerts.ts';
import { dashboards } from '../monitoring/dashboards.ts';

const PROMETHEUS_OPERATOR = 'monitoring.coreos.com/v1';

/** The ServiceMonitors. */
export function addServiceMonitors(chart: Construct, install: Install): void {
  const { namespace, monitoring } = install.installation;
  for (const component of ['operator', 'extensionServer'] as const) {
    new ApiObject(chart, component, {
      apiVersion: PROMETHEUS_OPERATOR,
      kind: 'ServiceMonitor',
      metadata: { name: COMPONENTS[component], labels: labelsOf(install, component, monitoring.labels) },
      spec: {
        selector: { matchLabels: selectorOf(component) },
        namespaceSelector: { matchNames: [namespace] },
        endpoints: [
          {
            port: 'metrics',
            path: '/metrics',
            interval: monitoring.scrapeInterval,
            // The labels namespace and endpoint of an endpoint's health are those of its MeshEndpoints, not of this target.
            honorLabels: true,
          },
        ],
      },
    });
  }
}

/** The PodMonitor of the relays, whose series have the name of the MeshTailnet in the label `tailnet`. */
export function addPodMonitor(chart: Construct, install: Install): void {
  const { namespace, monitoring } = install.installation;
  new ApiObject(chart, RELAY.job, {
    apiVersion: PROMETHEUS_OPERATOR,
    kind: 'PodMonitor',
    metadata: { name: RELAY.job, labels: labelsOf(install, undefined, monitoring.labels) },
    spec: {
      selector: { matchLabels: { ...MESH_POD.labels, [RELAY.label]: 'true' } },
      namespaceSelector: { matchNames: [namespace] },
      podMetricsEndpoints: [
        {
          port: RELAY.portName,
          path: '/metrics',
          interval: monitoring.scrapeInterval,
          relabelings: [
            { targetLabel: 'job', replacement: RELAY.job },
            { targetLabel: 'tailnet', sourceLabels: [TAILNET_OF_POD] },
          ],
        },
      ],
    },
  });
}

/** Prometheus' own label for a label of a pod. */
const TAILNET_OF_POD = `__meta_kubernetes_pod_label_${MESH_POD.tailnetLabel.replaceAll(/[^a-z0-9]/g, '_')}`;

/** The alerts. */
export function addRules(chart: Construct, install: Install): void {
  const { labels } = install.installation.monitoring;
  new ApiObject(chart, 'rules', {
    apiVersion: PROMETHEUS_OPERATOR,
    kind: 'PrometheusRule',
    metadata: { name: 'mesh-gateway', labels: labelsOf(install, undefined, labels) },
    spec: { groups: [{ name: 'mesh-gateway', rules: alerts(install.installation.namespace) }] },
  });
}

/** The dashboards, in ConfigMaps for Grafana's sidecar. */
export function addDashboards(chart: Construct, install: Install): void {
  const { dashboardLabels = { grafana_dashboard: '1' } } = install.installation.monitoring;
  for (const [name, dashboard] of dashboards()) {
    new k8s.KubeConfigMap(chart, name, {
      metadata: { name: `mesh-gateway-${name}`, labels: labelsOf(install, undefined, dashboardLabels) },
      data: { [`mesh-gateway-${name}.json`]: `${JSON.stringify(dashboard, undefined, 2)}\n` },
    });
  }
}
