import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { takeTurn } from '../../../lab/process/lock.ts';
import { canHaveOwnNetworks } from './own-networks.ts';

let endTurn: (() => void) | undefined;

/**
 * Waits for other runs where all share a network: Envoy Gateway has a fixed port, so two runs of these tests would
 * collide.
 */
export async function setup(): Promise<void> {
  if (canHaveOwnNetworks()) return;
  console.warn(
    'SLOW: this user may not make network namespaces (unshare --user --net): the files run one after another',
  );
  endTurn = await takeTurn(join(tmpdir(), 'mesh-gateway-lab-tests'));
}

/** Releases the lock for the next run. */
export function teardown(): void {
  endTurn?.();
}
