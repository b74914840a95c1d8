import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { CLUSTER_TURN, useCluster } from '../../../lab/cluster/use-cluster.ts';
import { guard } from '../../../lab/process/guard.ts';
import type { Guard } from '../../../lab/process/guard.ts';
import { shareTurn } from '../../../lab/process/lock.ts';
import { succeed } from '../lab/command-line.ts';
import './cluster.ts';
import { endOf, removeImages } from './install/shared.ts';

/** The folder of the product, which is installed when a test needs it. */
const installation = join(tmpdir(), `mesh-tests-${process.pid}`);
const end = endOf(installation);

let ended: (() => Promise<void>) | undefined;
let goesOn = false;
let remover: Guard | undefined;

/**
 * Starts a cluster for all tests, unless one is running that has no installation; it ends with the tests, even if they are killed.
 */
export async function setup({ provide }: TestProject): Promise<void> {
  const isFresh = process.env['CI'] !== undefined;
  const used = await useCluster({ user: 'npm run test:cluster', onStep: () => undefined, isFresh });
  ended = used.end;
  goesOn = used.goesOn;
  provide('cluster', used.cluster);
  remover = guard(['sh', '-c', `[ ! -x ${end} ] || exec ${end}`], tmpdir());
  shareTurn(CLUSTER_TURN, remover);
  provide('installation', installation);
}

/** Ends the cluster that was started for the tests; removes the product from one that goes on. */
export async function teardown(): Promise<void> {
  if (!goesOn) await ended?.();
  if (existsSync(end)) {
    // Of a cluster that has ended it removes only the folders.
    await succeed([end]);
    if (goesOn) await removeImages();
  }
  remover?.release();
  if (goesOn) await ended?.();
}
