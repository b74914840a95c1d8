import { setTimeout as sleep } from 'node:timers/promises';
import type { Figure } from '../figures.ts';
import { startScene } from './scene.ts';
import type { LoadResult } from './scene.ts';

const ASSOCIATIONS = 4000;
const PORTS = 1000;

/** After this time memory is measured: what the start needed for a moment has been freed. */
const SETTLE_MS = 3000;

/** How long datagrams are sent. */
const [ASSOCIATIONS_SECONDS, PORTS_SECONDS] = [4, 1];

/** How long memory is measured. */
export const MEMORY_MS = 2 * SETTLE_MS + 1000 * (ASSOCIATIONS_SECONDS + PORTS_SECONDS);

export async function memoryFigures(): Promise<readonly Figure[]> {
  return [await associationFigure(), ...(await portFigures())];
}

async function associationFigure(): Promise<Figure> {
  const scene = await startScene({ portCount: 1, clients: ASSOCIATIONS });
  try {
    const { relay, generator } = scene;
    await sleep(SETTLE_MS);
    const before = relay.bytes();
    // One datagram of each client.
    const load = { bytes: 64, seconds: ASSOCIATIONS_SECONDS, rate: ASSOCIATIONS / ASSOCIATIONS_SECONDS };
    const { received } = (await generator.request(load)) as LoadResult;
    if (received !== ASSOCIATIONS) throw new Error(`only ${received} associations`);
    await sleep(SETTLE_MS);
    return {
      name: `memory of an idle association, ${ASSOCIATIONS} of them`,
      value: (relay.bytes() - before) / ASSOCIATIONS / 1024,
      unit: 'KB',
      aim: 24,
    };
  } finally {
    await scene.end();
  }
}

async function portFigures(): Promise<readonly Figure[]> {
  const scene = await startScene({ portCount: PORTS, clients: PORTS });
  try {
    const { relay, generator } = scene;
    const listening = relay.first as { readonly tookMs: number; readonly bytes: number };
    const load = { bytes: 64, seconds: PORTS_SECONDS, rate: PORTS / PORTS_SECONDS };
    const { received } = (await generator.request(load)) as LoadResult;
    if (received !== PORTS) throw new Error(`only ${received} ports forward`);
    return [
      { name: `time until a relay listens on ${PORTS} ports`, value: listening.tookMs, unit: 'ms' },
      { name: `memory of these ports`, value: listening.bytes / PORTS / 1024, unit: 'KB each' },
      { name: 'memory of the relay with one client on each', value: relay.bytes() / 1024 ** 2, unit: 'MB' },
    ];
  } finally {
    await scene.end();
  }
}
