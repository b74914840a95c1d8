/** `npm run cluster -- up | down | status | env`: a whole Kubernetes with Envoy Gateway and a tailnet on this machine, as root. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CLUSTER_FOLDER, ClusterFolder } from '../cluster/cluster-folder.ts';
import type { Cluster } from '../cluster/cluster-folder.ts';
import { cniFolder, lackOf } from '../cluster/needs.ts';
import { runAlone } from './run-alone.ts';
import { startCluster } from '../cluster/start.ts';
import { clusterVariables } from './cluster-variables.ts';
import { runCommand } from './up-down.ts';
import type { Subject } from './up-down.ts';
import { cacheFolder, locateBinaries } from '../parts/locate.ts';
import { runMain } from './run-main.ts';

const USAGE = `npm run cluster -- COMMAND

  up      start the cluster, or say where it runs; needs root and npm run parts
  down    end every process of it and remove its folder
  status  tell what runs
  env     print where everything is, as variables for a shell
  alone   run another API server, with its store and all kinds but nothing that runs pods, until Ctrl-C; needs no root
`;

const searchPath = process.env['PATH'] ?? '';

const subject: Subject<Cluster> = {
  name: 'cluster',
  usage: USAGE,
  folder: new ClusterFolder(CLUSTER_FOLDER),
  start: (stop, tell) =>
    startCluster({
      folder: CLUSTER_FOLDER,
      pathOf: locateBinaries(process.env),
      searchPath,
      imageCache: join(cacheFolder(process.env), 'images'),
      cniPrograms: cniFolder() ?? '',
      tell,
      stop,
    }),
  variables: clusterVariables,
  lackFor: command => lackOf({ isRoot: process.getuid?.() === 0, searchPath }, command),
};

await runMain('cluster', () => {
  const [command] = parseArgs({ allowPositionals: true }).positionals;
  return command === 'alone'
    ? runAlone({ pathOf: locateBinaries(process.env), searchPath })
    : runCommand(subject, command);
});
