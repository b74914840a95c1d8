import { setTimeout as sleep } from 'node:timers/promises';
import { waitForCondition } from '../../lab/kube/wait.ts';
import { until } from '../../lab/process/wait.ts';
import { forgetNode, listNodes } from '../../lab/tailnet/tailnet.ts';
import { poolName } from '../../src/api/names.ts';
import type { Figure } from '../figures.ts';
import { startLoad } from './failover.ts';
import type { Installation } from '../../lab/install/installation.ts';

const BEFORE_MS = 5_000;
/** A request that hangs is ended by Envoy after 15 s. */
const AFTER_MS = 20_000;
const TIMEOUT_MS = 300_000;

/** How long the load lasts beside what it waits for. */
export const REMOVAL_MS = BEFORE_MS + AFTER_MS;

/** Removes the device of one of two mesh pods without logging it out, as headscale does. */
export async function removalFigures(installation: Installation): Promise<readonly Figure[]> {
  const { client, admin, tailnet, gateway } = installation;
  const { name } = tailnet.metadata;
  const hostname = `${poolName(name)}-0-`;
  const device = async () => (await listNodes(admin)).find(node => node.hostname.startsWith(hostname));
  const before = await device();
  if (!before) throw new Error('the first mesh pod has no device');
  const load = startLoad(gateway);
  try {
    await sleep(BEFORE_MS);
    const removedAt = performance.now();
    await forgetNode(admin, before.id);
    const isNew = async () => ((await device())?.id ?? before.id) !== before.id;
    await until('a new device', isNew, { timeoutMs: TIMEOUT_MS });
    const joinedAt = performance.now();
    const ref = { apiVersion: tailnet.apiVersion, kind: tailnet.kind, name };
    await waitForCondition(client, ref, 'PoolReady', 'True', TIMEOUT_MS);
    await sleep(AFTER_MS);
    const requests = await load.end();
    const failed = requests.filter(({ endedAt, error }) => error !== undefined && endedAt >= removedAt);
    const last = Math.max(removedAt, ...failed.map(({ endedAt, tookMs }) => endedAt - tookMs));
    console.error(`${failed.length} of ${requests.length} requests failed after the device was removed`);
    return [
      {
        name: 'device removed, not logged out, to the last failed request, syncInterval 30 s',
        value: (last - removedAt) / 1000,
        unit: 's',
        aim: 60,
      },
      { name: 'device removed to a new device', value: (joinedAt - removedAt) / 1000, unit: 's', aim: 120 },
    ];
  } finally {
    await load.end();
  }
}
