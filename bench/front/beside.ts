import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../figures.ts';
import type { Figure } from '../figures.ts';
import { openPath } from '../relay/path.ts';
import type { Path } from '../relay/path.ts';
import type { ReceivedReport } from './received.ts';
import { MODES } from './scene.ts';
import type { LoadCommand, Scene } from './scene.ts';
import { close } from './transfer.ts';

const [WARM_UP, COUNT] = [5, 40];

/** After this time without a reply, a datagram counts as lost. */
const LOST_MS = 2000;

const MESSAGE = Buffer.alloc(512, 'x');
const STREAMS = 64;
const STARTED_MS = 300;

/** What runs meanwhile: through the front, or through the proxy of the same tailscaled and past the process of the front. */
const LOADS = (['down', 'up'] as const).flatMap(direction =>
  (['alone', 'front'] as const).map(way => ({ direction, way })),
);

type Took = {
  readonly datagram: readonly number[];
  readonly lost: number;
  readonly connection: readonly number[];
};

/** Datagrams and a connection of a VIP service, which the process of the front serves, too, while streams run through it. */
export async function besideFigures(scene: Scene): Promise<readonly Figure[]> {
  const figures = [...figuresOf('nothing else', await measure(scene))];
  for (const load of LOADS) {
    const { direction, way } = load;
    const through = way === 'front' ? 'through the front' : 'past it';
    figures.push(...figuresOf(`${STREAMS} streams ${direction} ${through}`, await underLoad(scene, load)));
  }
  return figures;
}

function figuresOf(load: string, { datagram, lost, connection }: Took): readonly Figure[] {
  return [
    { name: `datagram and reply of the relay beside ${load}, p50`, value: median(datagram), unit: 'ms' },
    { name: `the same: lost of ${WARM_UP + COUNT}`, value: lost, unit: '' },
    { name: `round trip of a VIP service beside ${load}, p50`, value: median(connection), unit: 'ms' },
  ];
}

/** Fails if the streams carried nothing meanwhile. */
async function underLoad(scene: Scene, { direction, way }: (typeof LOADS)[number]): Promise<Took> {
  const { load, service, proxies, target } = scene;
  const open: LoadCommand = { do: 'open', proxy: proxies[way], target, mode: direction, streams: STREAMS };
  await load.request(open);
  await sleep(STARTED_MS);
  const [receiver, question] = direction === 'down' ? [load, { do: 'report' }] : [service, {}];
  const received = async () => ((await receiver.request(question)) as ReceivedReport).bytes;
  const before = await received();
  const took = await measure(scene);
  if ((await received()) === before) throw new Error(`no bytes went ${direction}`);
  await close(scene);
  return took;
}

async function measure({ relayPort, hop }: Scene): Promise<Took> {
  const datagrams = await openPath(relayPort, MESSAGE, LOST_MS);
  const connection = await openConnection(hop);
  const took = { datagram: [] as number[], lost: 0, connection: [] as number[] };
  for (let turn = 0; turn < WARM_UP + COUNT; turn++) {
    const datagram = await datagrams.exchange().catch(() => undefined);
    const ofConnection = await connection.exchange();
    if (datagram === undefined) took.lost++;
    if (turn < WARM_UP) continue;
    if (datagram !== undefined) took.datagram.push(datagram);
    took.connection.push(ofConnection);
  }
  for (const path of [datagrams, connection]) path.close();
  return took;
}

/** A connection to the service, which returns each byte. */
async function openConnection({ host, port }: Scene['hop']): Promise<Path> {
  const socket = connect({ host, port, noDelay: true });
  const received = socket[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const exchange = async (message: Buffer) => {
    const begun = performance.now();
    socket.write(message);
    for (let left = message.length; left > 0;) {
      const chunk = await received.next();
      if (chunk.done) throw new Error('the connection was closed');
      left -= chunk.value.length;
    }
    return performance.now() - begun;
  };
  await exchange(Buffer.from(MODES.echo));
  return { exchange: () => exchange(MESSAGE), close: () => void socket.destroy() };
}
