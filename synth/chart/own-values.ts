import { CHART_NAMES, objectsByFile } from '../install.ts';
import type { Manifest } from '../install.ts';
import type { Install } from '../installation.ts';
import type { Schema } from './fields.ts';

/** What a release decides beside the configuration. */
export type OwnValues = {
  readonly createNamespace: boolean;
  readonly crds: { readonly enabled: boolean; readonly keep: boolean };
  readonly monitoring: { readonly enabled: boolean };
};

const isOn = (usual: boolean, description: string): Schema => ({
  type: 'boolean',
  default: usual,
  description,
});

/** The schema of a configuration with these values; the namespace is that of the release. */
export function withOwnValues({ properties = {}, ...schema }: Schema): Schema {
  const { namespace: _, monitoring, ...others } = properties;
  if (!monitoring) throw new Error('the configuration has no monitoring');
  const enabled = isOn(false, 'Whether objects for the Prometheus operator and Grafana are installed.');
  return {
    ...schema,
    description: 'Values of the chart.',
    properties: {
      createNamespace: isOn(
        false,
        'Whether the namespace of the release is an object of the chart, which enforces the restricted level of Pod Security, and is deleted with the release. For helm template; helm install needs a namespace that exists.',
      ),
      crds: {
        type: 'object',
        default: {},
        description: 'The CRDs.',
        properties: {
          enabled: isOn(true, 'Whether the CRDs are installed and upgraded with the chart.'),
          keep: isOn(true, 'Whether helm uninstall keeps the CRDs, and so all objects of their kinds.'),
        },
      },
      ...others,
      monitoring: {
        ...monitoring,
        description: 'Objects for the Prometheus operator and Grafana.',
        properties: { enabled, ...monitoring.properties },
      },
    },
  };
}

/** The objects of a release by file. */
export function objectsOfRelease(
  install: Install,
  { createNamespace, crds, monitoring }: OwnValues,
  definitions: readonly Manifest[],
): ReadonlyMap<string, readonly Manifest[]> {
  const isInstalled: Readonly<Record<string, boolean>> = {
    namespace: createNamespace,
    monitoring: monitoring.enabled,
    'envoy-gateway': false,
  };
  const installed = CHART_NAMES.filter(name => isInstalled[name] ?? true);
  const kept = { 'helm.sh/resource-policy': 'keep' };
  const annotated = definitions.map(definition => ({
    ...definition,
    metadata: { ...definition.metadata, ...(crds.keep ? { annotations: kept } : {}) },
  }));
  return new Map([['crds.yaml', crds.enabled ? annotated : []], ...objectsByFile(install, installed)]);
}
