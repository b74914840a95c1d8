import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { CLUSTER_FOLDER, ClusterFolder } from '../../../lab/cluster/cluster-folder.ts';
import { CLUSTER_TURN } from '../../../lab/cluster/use-cluster.ts';
import { guard } from '../../../lab/process/guard.ts';
import type { Guard } from '../../../lab/process/guard.ts';
import { shareTurn, takeTurn } from '../../../lab/process/lock.ts';
import { PROJECT, runCommand, succeed, typescript } from '../lab/command-line.ts';
import './cluster.ts';
import { endOf, removeImages } from './install/shared.ts';

const up = typescript('lab/commands/cluster.ts', 'up');
const down = typescript('lab/commands/cluster.ts', 'down');

/** The folder of the product, which is installed when a test needs it. */
const installation = join(tmpdir(), `mesh-tests-${process.pid}`);
const end = endOf(installation);

let endTurn: (() => void) | undefined;
let cleaner: Guard | undefined;
let remover: Guard | undefined;

/** Starts a cluster for all tests, unless one is running; it ends with the tests, even if they are killed. */
export async function setup({ provide }: TestProject): Promise<void> {
  endTurn = await takeTurn(CLUSTER_TURN);
  const folder = new ClusterFolder(CLUSTER_FOLDER);
  // In CI, a running cluster was left behind by an earlier run.
  if (process.env['CI'] !== undefined) await runCommand(down);
  if (!folder.running()) {
    cleaner = guard(down, PROJECT);
    shareTurn(CLUSTER_TURN, cleaner);
  }
  const { code, output } = await runCommand(up);
  const cluster = folder.running();
  if (code !== 0 || !cluster) throw new Error(`there is no cluster for the tests:\n${output}`);
  provide('cluster', cluster);
  remover = guard(['sh', '-c', `[ ! -x ${end} ] || exec ${end}`], tmpdir());
  shareTurn(CLUSTER_TURN, remover);
  provide('installation', installation);
}

/** Ends the cluster that was started for the tests; removes the product from one that goes on. */
export async function teardown(): Promise<void> {
  if (cleaner) {
    await runCommand(down);
    cleaner.release();
  }
  if (existsSync(end)) {
    // Of a cluster that has ended it removes only the folders.
    await succeed([end]);
    if (!cleaner) await removeImages();
  }
  remover?.release();
  endTurn?.();
}
