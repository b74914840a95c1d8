import type { Row } from './cells.ts';
import { proveRows } from './matrix.ts';
import type { Outcome } from './matrix.ts';
import { meshTailnet } from '../objects.ts';
import { startSystem } from '../system.ts';
import { startWitness } from './witness.ts';
import { TCP_LISTENERS, matrixSystem } from './matrix-system.ts';

/**
 * Proves the rows in which Envoy reaches the mesh through a proxy, all on loopback; a witness before the proxy counts
 * bytes.
 */
export async function proveProxied(rows: readonly Row[]): Promise<readonly Outcome[]> {
  const system = await startSystem({ tcpListeners: TCP_LISTENERS });
  try {
    const witness = await startWitness(system.lab.proxy);
    try {
      system.put('tailnet', [meshTailnet(system.lab, [witness.address])]);
      const carriedTo = ({ address }: { readonly address: string }, port: number) =>
        witness.carried(`${address}:${port}`);
      // Many large payloads at once, in both directions, have been seen to stall a daemon's own network.
      const isShared = rows.some(({ properties }) => properties.includes('100 MB'));
      return await proveRows(rows, await matrixSystem({ system, rows, isShared, carriedTo }));
    } finally {
      await witness.end();
    }
  } finally {
    await system.end();
  }
}
