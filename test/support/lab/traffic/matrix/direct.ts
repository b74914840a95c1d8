/** Proves the rows in which Envoy itself is on the mesh, in a network namespace of its own, and prints the outcomes. */
import { locateBinaries } from '../../../../../lab/parts/locate.ts';
import { startMeshNode } from '../../../../../lab/tailnet/mesh-node.ts';
import { starterIn } from '../../../../../lab/process/starter.ts';
import { rowsOf } from './cells.ts';
import { interfaceCounters } from './counters.ts';
import { proveRows } from './matrix.ts';
import { meshTailnet } from '../objects.ts';
import { startSystem } from '../system.ts';
import { TCP_LISTENERS, matrixSystem } from './matrix-system.ts';

const INTERFACE = 'mesh0';

/** The address of a proxy that does not exist and is not used. */
const NO_PROXY = '127.0.0.1:1';

const rows = rowsOf(process.argv[2] === 'long' ? 'long' : 'short').filter(({ path }) => path === 'Direct');
const system = await startSystem({ dataPath: 'Direct', tcpListeners: TCP_LISTENERS });
try {
  const starter = starterIn(system.folder, locateBinaries(process.env), process.env['PATH'] ?? '');
  const options = { hostname: 'envoy', tags: ['tag:mesh'], networkInterface: INTERFACE };
  await startMeshNode(starter, system.lab.tailnet, options);
  system.put('tailnet', [meshTailnet(system.lab, [NO_PROXY])]);
  const carriedTo = () => ({ tunnels: 0, ...interfaceCounters(INTERFACE) });
  const outcomes = await proveRows(rows, await matrixSystem({ system, rows, carriedTo, isShared: true }));
  console.log(JSON.stringify({ outcomes }));
} finally {
  await system.end();
}
