import type { Row } from './cells.ts';
import { fillMatrix } from './matrix.ts';
import type { Outcome } from './matrix.ts';
import { meshTailnet } from '../objects.ts';
import { startSystem } from '../system.ts';
import { startWitness } from './witness.ts';
import { TCP_LISTENERS, worldOf } from './world.ts';

/**
 * Proves the rows in which Envoy reaches the mesh through a proxy, all on loopback; a witness before the proxy counts
 * bytes.
 */
export async function fillProxied(rows: readonly Row[]): Promise<readonly Outcome[]> {
  const system = await startSystem({ tcpListeners: TCP_LISTENERS });
  try {
    const witness = await startWitness(system.lab.proxy);
    try {
      system.put('tailnet', [meshTailnet(system.lab, [witness.address])]);
      const carriedTo = ({ address }: { readonly address: string }, port: number) =>
        witness.carried(`${address}:${port}`);
      // Many large payloads at once, in both directions, have been seen to stall a daemon's own network.
      const isShared = rows.some(({ parts }) => parts.includes('100 MB'));
      return await fillMatrix(rows, await worldOf({ system, rows, isShared, carriedTo }));
    } finally {
      await witness.end();
    }
  } finally {
    await system.end();
  }
}
