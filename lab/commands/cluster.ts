/** `npm run cluster -- up | down | status | env`: a whole Kubernetes with Envoy Gateway and a tailnet on this machine, as root. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CLUSTER_FOLDER, ClusterFolder } from '../cluster/cluster-folder.ts';
import type { Cluster } from '../cluster/cluster-folder.ts';
import { cniFolder, missingOf } from '../cluster/needs.ts';
import { startCluster } from '../cluster/start.ts';
import { clusterVariables, assignments } from './variables.ts';
import { runCommand } from './up-down.ts';
import type { Subject } from './up-down.ts';
import { cacheFolder, locateBinaries } from '../parts/locate.ts';
import { runMain, EXIT, stopOnSignals } from './run-main.ts';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { NAMESPACE } from '../../src/api/names.ts';
import { StateFolder } from '../process/state-folder.ts';
import { startApiServerAlone } from '../cluster/api-server-alone.ts';
import type { ApiServerOptions } from '../cluster/api-server-alone.ts';

const USAGE = `npm run cluster -- COMMAND

  up      start the cluster, or print where it runs; needs root and npm run parts
  down    end every process of it and remove its folder
  status  list the processes and their logs
  env     print all addresses, as shell variables
  alone   run another API server, with its store and all kinds but nothing that runs pods, until Ctrl-C; needs no root
`;

const searchPath = process.env['PATH'] ?? '';

const subject: Subject<Cluster> = {
  name: 'cluster',
  usage: USAGE,
  folder: new ClusterFolder(CLUSTER_FOLDER),
  start: (stop, onStep) =>
    startCluster({
      folder: CLUSTER_FOLDER,
      pathOf: locateBinaries(process.env),
      searchPath,
      imageCache: join(cacheFolder(process.env), 'images'),
      cniPrograms: cniFolder() ?? '',
      onStep,
      stop,
    }),
  variables: clusterVariables,
  missingFor: command => missingOf({ isRoot: process.getuid?.() === 0, searchPath }, command),
};

await runMain('cluster', () => {
  const [command] = parseArgs({ allowPositionals: true }).positionals;
  return command === 'alone'
    ? runAlone({
        pathOf: locateBinaries(process.env),
        searchPath,
        storeCache: join(cacheFolder(process.env), 'stores'),
      })
    : runCommand(subject, command);
});

/** Runs an API server alone until a signal or the end of standard input; returns the exit code. */
export async function runAlone(options: Omit<ApiServerOptions, 'notes'>): Promise<number> {
  const stop = stopOnSignals();
  const folder = new StateFolder<never>(mkdtempSync(join(tmpdir(), 'mesh-api-server-')));
  folder.create();
  try {
    const { kubeconfig, access, client } = await startApiServerAlone({ ...options, notes: folder });
    // The operator keeps its Lease there.
    await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
    const variables = [
      ['KUBECONFIG', kubeconfig],
      ['KUBECTL', options.pathOf('kubectl')],
      ['API_SERVER', access.server],
      ['API_SERVER_CA', access.caFile],
      ['API_SERVER_TOKEN', access.token],
    ] as const;
    for (const line of assignments(variables)) console.log(line);
    console.error('the API server runs until Ctrl-C, or until its standard input ends');
    process.stdin.resume();
    if (!stop.aborted) await Promise.race([once(process.stdin, 'end'), once(stop, 'abort')]);
    return EXIT.done;
  } finally {
    await folder.remove();
  }
}
