import { ApiObject } from 'cdk8s';
import { k8s } from 'cdk8s-plus-28';
import type { Construct } from 'constructs';
import { COMPONENTS } from '../../src/api/names.ts';
import { labelsOf, selectorOf } from '../installation.ts';
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
        endpoints: [{ port: 'metrics', path: '/metrics', interval: monitoring.scrapeInterval }],
      },
    });
  }
}

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
