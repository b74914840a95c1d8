/** `mesh-gateway explain`: resolves the routes in a folder, without a cluster and without sending anything. */
import { stat } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { plainText } from './plain-text.ts';
import { routeExplainer } from './explain-routes.ts';
import type { Explained } from './explain-routes.ts';
import { Tracking } from '../store/tracking.ts';
import { trafficIndexes } from '../store/traffic/resources.ts';
import type { TrafficOptions } from '../store/traffic/values.ts';
import { NAMESPACE } from '../api/names.ts';
import { addressSettings, guardOf } from '../process/addresses.ts';
import { openDirectory } from '../files/directory.ts';
import type { Directory } from '../files/directory.ts';

/** What `mesh-gateway help explain` prints. */
export const EXPLAIN_HELP = `mesh-gateway explain [options] FOLDER

Reads the objects in a folder of YAML files: those of standalone, or those that
\`kubectl get --output yaml\` prints, with their status. For each route to MeshEndpoints it prints the
Envoy cluster of each rule, the endpoints that get its traffic and how Envoy reaches them, and what
is not used or not ready and why. It sends nothing.

  FOLDER        the folder of files
  --data-path   how Envoy reaches the mesh: Proxy, which is the default, or Direct
  --namespace   the namespace of mesh-gateway, where mesh pods run (default ${NAMESPACE})
  --external-targets-allow, --refused-addresses, --kubernetes-service-host
                which addresses may get traffic, as the processes have it in EXTERNAL_TARGETS_ALLOW,
                REFUSED_ADDRESSES and KUBERNETES_SERVICE_HOST

Exit status: 0 every backend can be used, 1 one cannot or a file cannot be read, 2 wrong usage.
`;

/** Runs `mesh-gateway explain`; returns the exit code. */
export async function runExplain(args: readonly string[]): Promise<number> {
  const { folder, ...options } = await readArguments(args);
  const directory = openDirectory({
    folder,
    indexes: trafficIndexes,
    content: 'stored',
    report: ({ file, line, message }) => console.error(plainText(`${file}:${line ?? 1}: ${message}`)),
    reportFailure: failure => console.error(failure),
  });
  try {
    return await explain(directory, options);
  } finally {
    await directory.close();
  }
}

async function readArguments(args: readonly string[]) {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      'data-path': { type: 'string', default: 'Proxy' },
      namespace: { type: 'string', default: NAMESPACE },
      'external-targets-allow': { type: 'string', default: '' },
      'refused-addresses': { type: 'string', default: '' },
      'kubernetes-service-host': { type: 'string', default: '' },
    },
    allowPositionals: true,
  });
  const dataPath = values['data-path'];
  if (dataPath !== 'Proxy' && dataPath !== 'Direct')
    throw new Error(`explain: --data-path ${JSON.stringify(dataPath)} is neither Proxy nor Direct`);
  const [folder, second] = positionals;
  if (folder === undefined || second !== undefined) throw new Error('explain: name one folder');
  const isFolder = await stat(folder).then(
    found => found.isDirectory(),
    () => false,
  );
  if (!isFolder) throw new Error(`explain: ${folder} is not a folder that can be read`);
  const { externalTargetsAllow, refusedAddresses } = addressSettings;
  const guard = guardOf({
    externalTargetsAllow: externalTargetsAllow.parse(
      '--external-targets-allow',
      values['external-targets-allow'],
    ),
    refusedAddresses: refusedAddresses.parse('--refused-addresses', values['refused-addresses']),
    apiServer: values['kubernetes-service-host'] || undefined,
  });
  return { folder, dataPath, podNamespace: values.namespace, guard } as const;
}

async function explain(
  { start, read, problems }: Directory,
  options: Omit<TrafficOptions, 'clusterEncoding' | 'settingsFrom'>,
): Promise<number> {
  const explainAll = routeExplainer(new Tracking(read), { ...options, clusterEncoding: '' });
  start();
  await read.whenSynced();
  const explained = explainAll();
  console.log(plainText(textOf(explained)));
  return problems().length === 0 && explained.every(({ isHealthy }) => isHealthy) ? 0 : 1;
}

function textOf(explained: readonly Explained[]): string {
  if (explained.length === 0) return 'no route has MeshEndpoints among its backends';
  return explained.map(({ text }) => text).join('\n\n');
}
