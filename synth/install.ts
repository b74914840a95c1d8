import { App, Chart, Yaml } from 'cdk8s';
import type { Construct } from 'constructs';
import { addAdmissionPolicies } from './charts/admission-policies.ts';
import { addEnvoyGatewayAccess, addEnvoyGatewayConfig, envoyGatewayValues } from './charts/envoy-gateway.ts';
import { addExtensionServer } from './charts/extension-server.ts';
import { addDashboards, addPodMonitor, addRules, addServiceMonitors } from './charts/monitoring.ts';
import { addNamespace } from './charts/namespace.ts';
import { addNetworkPolicies } from './charts/network-policies.ts';
import { addOperator } from './charts/operator.ts';
import { addRbac } from './charts/rbac.ts';
import { addSecretReader, addUserRoles } from './charts/user-roles.ts';
import type { Install } from './installation.ts';

/** What is installed: the configuration, the version, and the texts of the CRDs. */
export type InstallOptions = Install & { readonly definitions: readonly string[] };

/** The text of each file by its path. */
export type Files = ReadonlyMap<string, string>;

/** How a file is made: from objects, or otherwise as text; a file with an empty text is not written. */
type Content =
  | { readonly objects: (install: Install) => readonly Manifest[] }
  | { readonly text: (options: InstallOptions) => string };

/** Each chart by the name that `--only` takes, with its files. */
const CHARTS: Readonly<Record<string, Readonly<Record<string, Content>>>> = {
  crds: { 'crds.yaml': { text: ({ definitions }) => definitions.join('---\n') } },
  namespace: { 'namespace.yaml': charted(addNamespace) },
  rbac: {
    'rbac.yaml': charted((chart, options) => {
      addRbac(chart, options);
      addEnvoyGatewayAccess(chart, options);
      addUserRoles(chart, options);
      addSecretReader(chart, options);
    }),
  },
  'admission-policies': { 'admission-policies.yaml': charted(addAdmissionPolicies) },
  operator: { 'operator.yaml': charted(addOperator) },
  'extension-server': { 'extension-server.yaml': charted(addExtensionServer) },
  'network-policies': { 'network-policies.yaml': charted(addNetworkPolicies) },
  monitoring: {
    'monitoring/service-monitors.yaml': charted(addServiceMonitors),
    'monitoring/pod-monitors.yaml': charted(addPodMonitor),
    'monitoring/rules.yaml': charted(addRules),
    'monitoring/dashboards.yaml': charted(addDashboards),
  },
  'envoy-gateway': {
    'envoy-gateway/values.yaml': { text: envoyGatewayValues },
    'envoy-gateway/config-map.yaml': charted(addEnvoyGatewayConfig),
  },
};

/** The names of all charts, in the order in which they are applied. */
export const CHART_NAMES: readonly string[] = Object.keys(CHARTS);

/** The charts that are applied together: those whose files are in no folder of their own. */
export const DEFAULT_CHARTS: readonly string[] = CHART_NAMES.filter(name =>
  pathsOf([name]).every(path => !path.includes('/')),
);

/** The folders in which files can be, below the one that users name. */
export const FOLDERS: readonly string[] = ['', 'envoy-gateway', 'monitoring'];

/** The first line of every file, by which a later run recognizes it. */
export const MARK = '# Written by mesh-gateway synth: change the configuration instead.\n';

/** The files that charts may have. */
export function pathsOf(charts: readonly string[]): readonly string[] {
  return charts.flatMap(name => Object.keys(CHARTS[name] ?? {}));
}

/** All manifests of an installation, or only the named charts, beside files of an earlier run that stay. */
export function install(
  options: InstallOptions,
  only: readonly string[] = CHART_NAMES,
  staying: readonly string[] = [],
): Files {
  const texts = only.flatMap(name => Object.entries(CHARTS[name] ?? {}));
  const made = texts.map(([path, content]) => [path, textOf(content, options)] as const);
  const chosen = new Map(made.filter(([, text]) => text !== ''));
  const known = pathsOf(CHART_NAMES);
  const there = [...known, ...staying.filter(path => !known.includes(path))];
  const listed = there.filter(path => chosen.has(path) || staying.includes(path));
  return new Map([...chosen, ...kustomizations(pathsOf(only), listed)].map(marked));
}

/** The files of charts as one text of YAML documents. */
export function objectsText(options: InstallOptions, only: readonly string[]): string {
  const contents = only.flatMap(name => Object.values(CHARTS[name] ?? {}));
  const texts = contents.map(content => textOf(content, options));
  return texts.filter(text => text !== '').join('---\n');
}

function marked([path, text]: readonly [string, string]): readonly [string, string] {
  return [path, path.endsWith('.yaml') ? MARK + text : text];
}

type Add = (chart: Construct, install: Install) => void;

function charted(add: Add): Content {
  return { objects: install => objectsOf(install, add) };
}

function textOf(content: Content, options: InstallOptions): string {
  return 'text' in content ? content.text(options) : Yaml.stringify(...content.objects(options));
}

/** The objects of a chart of its own. */
export function objectsOf(install: Install, add: Add): readonly Manifest[] {
  const { namespace } = install.installation;
  const chart = new Chart(new App(), 'chart', { namespace, disableResourceNameHashes: true });
  add(chart, install);
  return (chart.toJson() as readonly Manifest[]).map(withoutForeignNamespace);
}

/** The objects of the named charts by file, before they are text. */
export function objectsByFile(
  install: Install,
  only: readonly string[],
): ReadonlyMap<string, readonly Manifest[]> {
  const contents = only.flatMap(name => Object.entries(CHARTS[name] ?? {}));
  return new Map(
    contents.flatMap(([path, content]) =>
      'objects' in content ? [[path, content.objects(install)] as const] : [],
    ),
  );
}

/** An object of Kubernetes. */
export type Manifest = { readonly kind: string; readonly metadata: Readonly<Record<string, unknown>> };

const CLUSTER_SCOPED = [
  'ClusterRole',
  'ClusterRoleBinding',
  'Namespace',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
];

/** cdk8s gives every object the namespace of its chart, also cluster-scoped ones. */
function withoutForeignNamespace(manifest: Manifest): Manifest {
  if (!CLUSTER_SCOPED.includes(manifest.kind)) return manifest;
  const { namespace: _, ...metadata } = manifest.metadata;
  return { ...manifest, metadata };
}

/** A kustomization for each folder whose files may have changed; folders are applied separately. */
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
