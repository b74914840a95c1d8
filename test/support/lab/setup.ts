import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { takeTurn } from '../take-turns.ts';

let endTurn: (() => void) | undefined;

/** Waits for its turn: Envoy Gateway has a port that cannot be chosen, so that two runs of these tests would collide. */
export async function setup(): Promise<void> {
  endTurn = await takeTurn(join(tmpdir(), 'mesh-gateway-lab-tests'));
}

/** Lets the next run begin. */
export function teardown(): void {
  endTurn?.();
}
