import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { quantile } from '../figures.ts';
import type { Figure } from '../figures.ts';
import { openPath } from '../relay/path.ts';
import type { Path } from '../relay/path.ts';
import type { ReceivedReport } from './received.ts';
import { MODES } from './scene.ts';
import type { LoadCommand, Scene } from './scene.ts';
import { close } from './transfer.ts';

const [WARM_UP, COUNT] = [100, 1000];
const MESSAGE = Buffer.alloc(512, 'x');
const STREAMS = 64;
const STARTED_MS = 300;
const TIMEOUT_MS = 10_000;

/** What runs through the front meanwhile. */
const LOADS = ['nothing', 'down', 'up'] as const;

type Took = { readonly datagram: readonly number[]; readonly connection: readonly number[] };

/** Datagrams and a connection of a VIP service, which the process of the front serves, too, while streams run through it. */
export async function besideFigures(scene: Scene): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const load of LOADS) {
    const took = load === 'nothing' ? await measure(scene) : await underLoad(scene, load);
    const beside = load === 'nothing' ? 'nothing else' : `${STREAMS} streams ${load}`;
    figures.push(
      ...figuresOf(`a datagram and its reply through the relay, beside ${beside}`, took.datagram),
      ...figuresOf(`a round trip of a VIP service, beside ${beside}`, took.connection),
    );
  }
  return figures;
}

function figuresOf(what: string, tookMs: readonly number[]): readonly Figure[] {
  return [
    { name: `${what}, p50`, value: quantile(tookMs, 0.5), unit: 'ms' },
    { name: `${what}, p99`, value: quantile(tookMs, 0.99), unit: 'ms' },
  ];
}

/** Fails if the streams carried nothing meanwhile. */
async function underLoad(scene: Scene, mode: 'down' | 'up'): Promise<Took> {
  const { load, service, proxies, target } = scene;
  const open: LoadCommand = { do: 'open', proxy: proxies.front, target, mode, streams: STREAMS };
  await load.request(open);
  await sleep(STARTED_MS);
  const [receiver, question] = mode === 'down' ? [load, { do: 'report' }] : [service, {}];
  const received = async () => ((await receiver.request(question)) as ReceivedReport).bytes;
  const before = await received();
  const took = await measure(scene);
  if ((await received()) === before) throw new Error(`no bytes went ${mode}`);
  await close(scene);
  return took;
}

async function measure({ relayPort, hop }: Scene): Promise<Took> {
  const datagrams = await openPath(relayPort, MESSAGE);
  const connection = await openConnection(hop);
  const took = { datagram: [] as number[], connection: [] as number[] };
  for (let turn = 0; turn < WARM_UP + COUNT; turn++) {
    const [datagram, ofConnection] = [await datagrams.exchange(), await connection.exchange()];
    if (turn < WARM_UP) continue;
    took.datagram.push(datagram);
    took.connection.push(ofConnection);
  }
  for (const path of [datagrams, connection]) path.close();
  return took;
}

/** A connection to the service, which returns each byte. */
async function openConnection({ host, port }: Scene['hop']): Promise<Path> {
  const socket = connect({ host, port, noDelay: true });
  await once(socket, 'connect');
  const exchange = async (message: Buffer) => {
    const begun = performance.now();
    socket.write(message);
    for (let bytes = 0; bytes < message.length;) {
      const [chunk] = (await once(socket, 'data', { signal: AbortSignal.timeout(TIMEOUT_MS) })) as [Buffer];
      bytes += chunk.length;
    }
    return performance.now() - begun;
  };
  await exchange(Buffer.from(MODES.echo));
  return { exchange: () => exchange(MESSAGE), close: () => void socket.destroy() };
}
