import { App, Chart, Yaml } from 'cdk8s';
import type { Construct } from 'constructs';
import { addEnvoyGatewayAccess, addEnvoyGatewayConfig, envoyGatewayValues } from './charts/envoy-gateway.ts';
import { addExtensionServer } from './charts/extension-server.ts';
import { addDashboards, addRules, addServiceMonitors } from './charts/monitoring.ts';
import { addNamespace } from './charts/namespace.ts';
import { addNetworkPolicies } from './charts/network-policies.ts';
import { addOperator } from './charts/operator.ts';
import { addRbac } from './charts/rbac.ts';
import { addSecretReader, addUserRoles } from './charts/user-roles.ts';
import type { Install } from './installation.ts';

/** What is installed: the configuration, the version, and the texts of the definitions of our kinds. */
export type InstallWish = Install & { readonly definitions: readonly string[] };

/** The text of each file by its path. */
export type Files = ReadonlyMap<string, string>;

/** What becomes of a chart: the files that it may have, and those that it has. */
type ChartFiles = { readonly paths: readonly string[]; readonly filesOf: (wish: InstallWish) => Files };

/** Each chart by the name under which users choose it. */
const CHARTS: Readonly<Record<string, ChartFiles>> = {
  crds: {
    paths: ['crds.yaml'],
    filesOf: ({ definitions }) => new Map([['crds.yaml', definitions.join('---\n')]]),
  },
  namespace: charted({ 'namespace.yaml': addNamespace }),
  rbac: charted({
    'rbac.yaml': (chart, wish) => {
      addRbac(chart, wish);
      addEnvoyGatewayAccess(chart, wish);
      addUserRoles(chart, wish);
      addSecretReader(chart, wish);
    },
  }),
  operator: charted({ 'operator.yaml': addOperator }),
  'extension-server': charted({ 'extension-server.yaml': addExtensionServer }),
  'network-policies': charted({ 'network-policies.yaml': addNetworkPolicies }),
  monitoring: charted({
    'monitoring/service-monitors.yaml': addServiceMonitors,
    'monitoring/rules.yaml': addRules,
    'monitoring/dashboards.yaml': addDashboards,
  }),
  'envoy-gateway': withFile(
    'envoy-gateway/values.yaml',
    envoyGatewayValues,
    charted({ 'envoy-gateway/config-map.yaml': addEnvoyGatewayConfig }),
  ),
};

/** The names of all charts, in the order in which they are applied. */
export const CHART_NAMES: readonly string[] = Object.keys(CHARTS);

/** The folders in which files can be, below the one that users name. */
export const FOLDERS: readonly string[] = ['', 'envoy-gateway', 'monitoring'];

/** The first line of every file, by which a later run knows its own. */
export const MARK = '# Written by mesh-gateway synth: change the configuration instead.\n';

/** The files that charts may have. */
export function pathsOf(charts: readonly string[]): readonly string[] {
  return charts.flatMap(name => CHARTS[name]?.paths ?? []);
}

/** Everything that a cluster needs, or only the charts that are named, beside files of an earlier run that stay. */
export function install(
  wish: InstallWish,
  only: readonly string[] = CHART_NAMES,
  staying: readonly string[] = [],
): Files {
  const chosen = new Map(only.flatMap(name => [...(CHARTS[name]?.filesOf(wish) ?? [])]));
  const known = pathsOf(CHART_NAMES);
  const there = [...known, ...staying.filter(path => !known.includes(path))];
  const listed = there.filter(path => chosen.has(path) || staying.includes(path));
  return new Map([...chosen, ...kustomizations(pathsOf(only), listed)].map(marked));
}

function marked([path, text]: readonly [string, string]): readonly [string, string] {
  return [path, path.endsWith('.yaml') ? MARK + text : text];
}

/** Each file with what adds to its chart; one without any object is not there. */
function charted(adders: Readonly<Record<string, (chart: Construct, install: Install) => void>>): ChartFiles {
  const filesOf = (wish: InstallWish): Files => {
    const texts = Object.entries(adders).map(([path, add]) => [path, chartText(wish, add)] as const);
    return new Map(texts.filter(([, text]) => text !== ''));
  };
  return { paths: Object.keys(adders), filesOf };
}

function withFile(path: string, textOf: (wish: InstallWish) => string, rest: ChartFiles): ChartFiles {
  const filesOf = (wish: InstallWish): Files => new Map([[path, textOf(wish)], ...rest.filesOf(wish)]);
  return { paths: [path, ...rest.paths], filesOf };
}

function chartText(wish: Install, add: (chart: Construct, install: Install) => void): string {
  const { namespace } = wish.installation;
  const chart = new Chart(new App(), 'chart', { namespace, disableResourceNameHashes: true });
  add(chart, wish);
  return Yaml.stringify(...(chart.toJson() as readonly Manifest[]).map(withoutForeignNamespace));
}

type Manifest = { readonly kind: string; readonly metadata: Readonly<Record<string, unknown>> };

const CLUSTER_SCOPED = ['ClusterRole', 'ClusterRoleBinding', 'Namespace'];

/** The library gives every object the namespace of its chart, and most servers pass over it where it means nothing. */
function withoutForeignNamespace(manifest: Manifest): Manifest {
  if (!CLUSTER_SCOPED.includes(manifest.kind)) return manifest;
  const { namespace: _, ...metadata } = manifest.metadata;
  return { ...manifest, metadata };
}

/** One for each folder in which anything may have changed, with all files that are in it; what is in folders of their own is applied by itself. */
function kustomizations(
  changed: readonly string[],
  listed: readonly string[],
): readonly (readonly [string, string])[] {
  return ['', 'monitoring/'].flatMap(folder => {
    const names = namesIn(folder, listed);
    if (namesIn(folder, changed).length === 0 || names.length === 0) return [];
    return [[folder + KUSTOMIZATION, kustomization(names)] as const];
  });
}

const KUSTOMIZATION = 'kustomization.yaml';

function namesIn(folder: string, paths: readonly string[]): readonly string[] {
  const names = paths.filter(path => path.startsWith(folder)).map(path => path.slice(folder.length));
  return names.filter(name => !name.includes('/') && name !== KUSTOMIZATION);
}

function kustomization(resources: readonly string[]): string {
  return Yaml.stringify({ apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization', resources });
}
