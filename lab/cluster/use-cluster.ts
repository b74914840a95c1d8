import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { CLUSTER_FOLDER, ClusterFolder } from './cluster-folder.ts';
import type { Cluster } from './cluster-folder.ts';
import { installationIn, refusalOf, userFile } from './installed.ts';
import { kubeClient } from '../kube/client.ts';
import { guard } from '../process/guard.ts';
import { shareTurn, takeTurn } from '../process/lock.ts';
import { stepIn } from '../process/steps.ts';
import type { OnStep } from '../process/steps.ts';

/** The command that runs a file of the project. */
export function commandLine(...args: readonly string[]): readonly string[] {
  return [process.execPath, '--import', 'tsx', ...args];
}

/** A machine has one cluster, which tests, benches and the conformance suite use one after another. */
export const CLUSTER_TURN = join(tmpdir(), 'mesh-gateway-cluster-tests');

/** Who uses the cluster, as messages name it, and who gets the steps of its start. */
export type ClusterUse = {
  readonly user: string;
  readonly onStep: OnStep;
  /** A running one is ended first: in CI an earlier run has left it behind. */
  readonly isFresh?: boolean;
};

/**
 * The running cluster, or one that is started and ends with this process at the latest. Fails, and has changed nothing,
 * if the running one has an installation of mesh-gateway.
 */
export async function useCluster({ user, onStep, isFresh = false }: ClusterUse): Promise<{
  readonly cluster: Cluster;
  /** Whether it goes on after its use. */
  readonly goesOn: boolean;
  readonly end: () => Promise<void>;
}> {
  const endTurn = await takeTurn(CLUSTER_TURN);
  const folder = new ClusterFolder(CLUSTER_FOLDER);
  const [up, down] = ['up', 'down'].map(command => commandLine('lab/commands/cluster.ts', command));
  if (isFresh) await runLine(down, onStep);
  const running = folder.running();
  const users = userFile(folder.path);
  if (running) {
    const client = kubeClient(running.access);
    const found = await installationIn((method, path) => client.request(method, path));
    const refusal = refusalOf(user, found, users.read());
    if (refusal !== undefined) throw new Error(refusal);
  }
  const cleaner = running ? undefined : guard(down ?? [], process.cwd());
  // After this process was killed, no other run may use a cluster that is about to end.
  if (cleaner) shareTurn(CLUSTER_TURN, cleaner);
  const end = async () => {
    users.remove();
    if (cleaner) await runLine(down, onStep);
    cleaner?.release();
    endTurn();
  };
  await runLine(up, onStep);
  const cluster = folder.running();
  if (!cluster) throw new Error('there is no cluster');
  users.write(user);
  return { cluster, goesOn: !cleaner, end };
}

/** Runs a command line of the project; the error has what it printed besides its steps. */
async function runLine([program = '', ...args]: readonly string[] = [], onStep: OnStep): Promise<void> {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const errors: string[] = [];
  createInterface(child.stderr).on('line', line => {
    const step = stepIn(line);
    if (step === undefined) errors.push(line);
    else onStep(`cluster: ${step}`);
  });
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  if (code === 0) return;
  throw new Error(errors.join('\n').trim() || `${args.join(' ')} ended with ${code ?? signal}`);
}
