import type { Figure } from '../figures.ts';
import { startScene } from './scene.ts';
import type { Load, LoadResult, Scene } from './scene.ts';

const [PORTS, CLIENTS, BYTES, SECONDS] = [4, 32, 512, 5];
const RATE = 20_000;
const WINDOW = 8;

/** How long the loads last, with the one that warms up. */
export const LOAD_MS = 1000 * (1 + 2 * SECONDS);

type Measured = LoadResult & { readonly cpuMs: number };

/** Speed with replies: the relay forwards each datagram and its reply. */
export async function loadFigures(): Promise<readonly Figure[]> {
  const scene = await startScene({ portCount: PORTS, clients: CLIENTS });
  try {
    await measure(scene, { bytes: BYTES, seconds: 1, rate: RATE / 10 });
    const atRate = await measure(scene, { bytes: BYTES, seconds: SECONDS, rate: RATE });
    const most = await measure(scene, { bytes: BYTES, seconds: SECONDS, window: WINDOW });
    return figuresOf(atRate, most);
  } finally {
    await scene.end();
  }
}

function figuresOf(atRate: Measured, most: Measured): readonly Figure[] {
  const at = `${RATE} datagrams of ${BYTES} bytes a second, each with a reply`;
  return [
    { name: `${at}: lost in ${SECONDS} s`, value: atRate.sent - atRate.received, unit: '', aim: 0 },
    { name: `${at}: CPU of the relay`, value: (100 * atRate.cpuMs) / atRate.tookMs, unit: '% of a core' },
    {
      name: `most such datagrams, ${CLIENTS * WINDOW} on the way at once`,
      value: (1000 * most.received) / most.tookMs,
      unit: '/s',
      aim: RATE,
      good: 'high',
    },
    { name: 'the latter: lost', value: most.sent - most.received, unit: '', aim: 0 },
    {
      name: 'the latter for a second of CPU time of the relay',
      value: (1000 * most.received) / most.cpuMs,
      unit: '/s',
    },
  ];
}

/** Fails if the load was less than it claims, or if the relay did not forward it. */
async function measure({ proxy, relay, generator }: Scene, load: Load): Promise<Measured> {
  await proxy.request({});
  const before = relay.cpuMs();
  const result = (await generator.request(load)) as LoadResult;
  const cpuMs = relay.cpuMs() - before;
  const { frames } = (await proxy.request({})) as { readonly frames: number };
  const { sent, received, tookMs } = result;
  const achieved = (1000 * sent) / tookMs;
  if ('rate' in load && achieved < 0.98 * load.rate)
    throw new Error(`the generator sent only ${Math.round(achieved)} datagrams a second`);
  if (received > frames || received > sent)
    throw new Error(`${sent} sent, ${frames} at the proxy, ${received} replies`);
  return { ...result, cpuMs };
}
