import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NAMESPACE } from '../../src/api/names.ts';
import { EXIT, stopOnSignals } from './run-main.ts';
import { assignments } from './shell.ts';
import { StateFolder } from '../process/state-folder.ts';
import { startApiServerAlone } from '../cluster/api-server-alone.ts';
import type { AloneWish } from '../cluster/api-server-alone.ts';

/** Runs an API server alone until a signal comes or our input ends, and leaves nothing of it; gives the status code. */
export async function runAlone(wish: Omit<AloneWish, 'notes'>): Promise<number> {
  const stop = stopOnSignals();
  const folder = new StateFolder<never>(mkdtempSync(join(tmpdir(), 'mesh-api-server-')));
  folder.create();
  try {
    const { kubeconfig, access, client } = await startApiServerAlone({ ...wish, notes: folder });
    // Whoever runs our processes on it needs nothing else: one of them keeps its Lease there.
    await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
    const variables = [
      ['KUBECONFIG', kubeconfig],
      ['KUBECTL', wish.pathOf('kubectl')],
      ['API_SERVER', access.server],
      ['API_SERVER_CA', access.caFile],
      ['API_SERVER_TOKEN', access.token],
    ] as const;
    for (const line of assignments(variables)) console.log(line);
    console.error('an API server alone runs until Ctrl-C, or until its input ends');
    process.stdin.resume();
    if (!stop.aborted) await Promise.race([once(process.stdin, 'end'), once(stop, 'abort')]);
    return EXIT.done;
  } finally {
    await folder.remove();
  }
}
