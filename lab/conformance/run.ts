import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Cluster } from '../cluster/cluster-folder.ts';
import { imageOf } from '../cluster/images/table.ts';
import { withInstallation } from '../install/installation.ts';
import { nodeImages, PROJECT } from '../install/image.ts';
import { kubeClient } from '../kube/client.ts';
import type { BinaryName } from '../parts/parts.ts';
import { addJoinKey } from '../tailnet/tailnet.ts';
import { sourceOf } from '../soak/source.ts';
import { rewriteManifests } from './manifests.ts';
import { keepMeshEndpoints, removeDevices } from './mesh-endpoints.ts';
import { excludedIn, implementationOf, limitsIn } from './modes.ts';
import type { Mode } from './modes.ts';
import { exportSuite, filesOf, runSuite } from './suite.ts';
import type { Result, SuiteTest } from './suite.ts';

/** A run of the suite to make. */
export type ConformanceOptions = {
  readonly cluster: Cluster;
  readonly pathOf: (name: BinaryName) => string;
  readonly mode: Mode;
  /** The tests to run; all if it is empty. */
  readonly tests: readonly string[];
  readonly onStep: (step: string) => void;
  /** Runs work while the product is installed, with its default tailnet; by default it installs and removes it. */
  readonly whileInstalled?: <T>(work: () => Promise<T>) => Promise<T>;
};

/** A run of the suite. */
export type Conformance = {
  readonly mode: Mode;
  /** The commit of the product, and whether files differed from it. */
  readonly commit: string;
  /** The tests that were selected and not excluded. */
  readonly tests: readonly SuiteTest[];
  readonly excluded: Readonly<Record<string, string>>;
  /** The cause of each failure that is known. */
  readonly limits: Readonly<Record<string, string>>;
  readonly results: readonly Result[];
  readonly report: string;
  readonly log: string;
};

/** Runs the suite in a cluster; in all modes but the first, the product is installed, and removed afterwards. */
export async function runConformance(options: ConformanceOptions): Promise<Conformance> {
  const { cluster, pathOf, mode, onStep } = options;
  const folder = join(PROJECT, '.cache', 'conformance', mode);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const tests = await selectedTests(options, filesOf(folder).manifests);
  const images = nodeImages(pathOf);
  for (const [name, tag] of IMAGES) await images.rename(imageOf(name), tag);
  try {
    const work = () => runTests(options, folder, tests);
    if (mode === 'envoy-gateway') return await work();
    if (options.whileInstalled) return await options.whileInstalled(work);
    onStep('installing mesh-gateway');
    return await withInstallation({ cluster, pathOf, onStep }, work);
  } finally {
    await images.remove(...IMAGES.map(([, tag]) => tag));
  }
}

/** The names by which the manifests of the suite call the images of the cluster. */
const IMAGES = [
  ['echo-basic', 'registry.k8s.io/gateway-api/echo-basic:v1.5.1'],
  ['echo-basic', 'registry.k8s.io/gateway-api/echo-basic:v1.6.0-dev.2'],
  ['echo-basic', 'registry.k8s.io/gateway-api/echo-basic:v1.6.0-dev.3'],
  ['coredns', 'registry.k8s.io/coredns/coredns:v1.12.2'],
] as const;

async function selectedTests({ pathOf, tests: names }: ConformanceOptions, manifests: string) {
  const all = await exportSuite(pathOf('conformance'), manifests);
  const unknown = names.filter(name => !all.some(test => test.name === name));
  if (unknown.length > 0) throw new Error(`the suite has no test ${unknown.join(', ')} for Envoy Gateway`);
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
}

async function runTests(
  options: ConformanceOptions,
  folder: string,
  selected: readonly SuiteTest[],
): Promise<Conformance> {
  const { cluster, pathOf, mode, onStep } = options;
  const { commit: id, isDirty } = sourceOf(PROJECT);
  const commit = isDirty ? `${id} with changes` : id;
  const excluded = excludedIn(mode);
  const tests = selected.filter(({ name }) => excluded[name] === undefined);
  const { report, log } = filesOf(folder);
  onStep(`base of the suite, then ${tests.length} tests`);
  const run = async () => {
    let count = 0;
    return await runSuite({
      program: pathOf('conformance'),
      kubeconfig: cluster.kubeconfig,
      folder,
      mode,
      implementation: implementationOf(mode),
      tests: options.tests,
      skipped: Object.keys(excluded),
      onResult: ({ name, passed, seconds }) =>
        onStep(`${++count} of ${tests.length}: ${name} ${passed ? 'passed' : 'FAILED'} after ${seconds} s`),
    });
  };
  const results = mode === 'mesh-endpoints' ? await withDevices(cluster, folder, run) : await run();
  return { mode, commit, tests, excluded, limits: limitsIn(mode), results, report, log };
}

/** Runs `work` while MeshEndpoints exist for the Services, with the pods as devices. */
async function withDevices<T>(cluster: Cluster, folder: string, work: () => Promise<T>): Promise<T> {
  const { tailnet } = cluster;
  const { key } = await addJoinKey(tailnet.admin, { reusable: true, ephemeral: true, tags: ['tag:web'] });
  rewriteManifests(filesOf(folder).manifests, { loginServer: tailnet.url, key });
  const stop = new AbortController();
  const kept = keepMeshEndpoints(kubeClient(cluster.access), tailnet, stop.signal);
  try {
    return await work();
  } finally {
    stop.abort();
    await kept;
    await removeDevices(kubeClient(cluster.access), tailnet);
  }
}
