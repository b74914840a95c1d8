import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CLUSTER_FOLDER, ClusterFolder } from './cluster-folder.ts';
import type { Cluster } from './cluster-folder.ts';
import { messageOf } from '../process/errors.ts';
import { guard } from '../process/guard.ts';
import { takeTurn } from '../process/lock.ts';

const run = promisify(execFile);

/** The command that runs a file of the project. */
export function commandLine(...args: readonly string[]): readonly string[] {
  return [process.execPath, '--import', 'tsx', ...args];
}

/** A machine has one cluster, which tests, benches and the conformance suite use one after another. */
export const CLUSTER_TURN = join(tmpdir(), 'mesh-gateway-cluster-tests');

/** The running cluster, or one that is started and ends with this process at the latest. */
export async function useCluster(): Promise<{
  readonly cluster: Cluster;
  readonly end: () => Promise<void>;
}> {
  const endTurn = await takeTurn(CLUSTER_TURN);
  const folder = new ClusterFolder(CLUSTER_FOLDER);
  const [up, down] = ['up', 'down'].map(command => commandLine('lab/commands/cluster.ts', command));
  const cleaner = folder.running() ? undefined : guard(down ?? [], process.cwd());
  const end = async () => {
    if (cleaner) await runLine(down);
    cleaner?.release();
    endTurn();
  };
  await runLine(up);
  const cluster = folder.running();
  if (!cluster) throw new Error('there is no cluster');
  return { cluster, end };
}

async function runLine([program = '', ...args]: readonly string[] = []): Promise<void> {
  try {
    await run(program, args, { maxBuffer: 64 * 1024 * 1024 });
  } catch (error) {
    const { stderr = '' } = error as { readonly stderr?: string };
    throw new Error(stderr.trim() || messageOf(error));
  }
}
