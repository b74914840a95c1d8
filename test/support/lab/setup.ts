import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { takeTurn } from '../../../lab/process/lock.ts';

let endTurn: (() => void) | undefined;

/** Waits for other runs: Envoy Gateway has a fixed port, so two runs of these tests would collide. */
export async function setup(): Promise<void> {
  endTurn = await takeTurn(join(tmpdir(), 'mesh-gateway-lab-tests'));
}

/** Releases the lock for the next run. */
export function teardown(): void {
  endTurn?.();
}
