import { locateBinaries } from '../../../lab/parts/locate.ts';
import { killProcess } from '../../../lab/process/process.ts';
import { starterIn } from '../../../lab/process/starter.ts';
import { until } from '../../../lab/process/wait.ts';
import { startDaemon } from '../../../lab/tailnet/mesh-node.ts';
import { remoteOf, serviceAt } from './lab.ts';
import type { TestLab } from './lab.ts';
import { exchange, socksTunnel } from './tunnel.ts';

/** Kills the meshd of a lab. */
export async function killMeshd({ folder }: TestLab): Promise<void> {
  const meshd = folder.processes().findLast(({ name }) => name === 'meshd');
  if (!meshd) throw new Error('the lab has no meshd');
  await killProcess(meshd);
}

/** Starts meshd again on its state and address. */
export function startMeshd({ folder, lab }: TestLab): void {
  const starter = starterIn(folder, locateBinaries(process.env), process.env['PATH'] ?? '');
  startDaemon(starter, { hostname: 'meshd', proxy: lab.proxy });
}

/** Waits until meshd connects to a device. */
export async function untilMeshdIsOnTheTailnet({ lab }: TestLab): Promise<void> {
  const target = serviceAt(remoteOf(lab, 'web-1'), 'tcp');
  const answers = async () => exchange(await socksTunnel(lab.proxy, target), 'there?');
  await until('meshd to reach a device', answers);
}
