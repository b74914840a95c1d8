import { readFileSync } from 'node:fs';
import { MESH_POD } from '../../src/api/names.ts';
import { processesWith } from '../process/process-table.ts';

/** The process of containerboot in a mesh pod, by its pid on this machine. */
export function containerProcess(podUid: string): number {
  const isFirst = (pid: number) => readFileSync(`/proc/${pid}/comm`, 'latin1').trim() === 'containerboot';
  const found = processesWith('POD_UID', podUid).find(isFirst);
  if (found === undefined) throw new Error(`no process of pod ${podUid} runs`);
  return found;
}

const ESTABLISHED = '01';

/** The number of connections to the proxy of a mesh pod, by the network of one of its processes. */
export function proxyConnections(pid: number): number {
  const port = MESH_POD.ports.proxy.toString(16).padStart(4, '0').toUpperCase();
  return ['tcp', 'tcp6']
    .flatMap(table => readFileSync(`/proc/${pid}/net/${table}`, 'latin1').trim().split('\n').slice(1))
    .map(line => line.trim().split(/\s+/))
    .filter(([, local = '', , state]) => local.endsWith(`:${port}`) && state === ESTABLISHED).length;
}
