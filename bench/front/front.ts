import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench, Figure } from '../figures.ts';
import { besideFigures } from './beside.ts';
import type { ReceivedReport } from './received.ts';
import { AT_ONCE, inScene } from './scene.ts';
import type { ConnectResult, ExchangeResult, LoadCommand, Scene } from './scene.ts';
import { close, inTurns, mb, TRANSFER_MS, transferFigures } from './transfer.ts';

const [WARM_UP, ROUND_TRIPS] = [300, 3000];
const [CONNECT_ROUNDS, CONNECT_MS] = [3, 1500];
const IDLE_TUNNELS = 1000;

/** After this time memory is measured: what opening tunnels needed for a moment has been freed. */
const SETTLE_MS = 3000;

/** Failed connections that the proxies and the device may have. */
const MAX_FAILED = 0.01;

/** What the lab takes to start, and what the loads take that are not timed. */
const REST_MS = 100_000;

/** Measures the front of a mesh pod, compared with the proxy of the same tailscaled, in turns, in the lab. */
export const front: Bench = {
  duration: () => ({ aboutMs: REST_MS + TRANSFER_MS + 2 * CONNECT_ROUNDS * CONNECT_MS + SETTLE_MS }),
  run: onStep => {
    onStep('a front before a tailscaled, in the lab');
    return inScene(async scene => {
      onStep(`${ROUND_TRIPS} round trips`);
      const latency = await latencyFigures(scene);
      onStep('throughput');
      const throughput = await transferFigures(scene);
      onStep('connections');
      const connections = await connectionFigures(scene);
      onStep('datagrams and VIP services beside streams');
      const beside = await besideFigures(scene);
      onStep(`${IDLE_TUNNELS} idle tunnels`);
      return [...latency, ...throughput, ...connections, ...beside, await idleFigure(scene)];
    });
  },
};

/** Fails if the service did not receive each message. */
async function latencyFigures({ load, service, proxies, target }: Scene): Promise<readonly Figure[]> {
  const before = await reportOf(service);
  const command: LoadCommand = {
    do: 'exchange',
    proxies: [proxies.alone, proxies.front],
    target,
    warmUp: WARM_UP,
    count: ROUND_TRIPS,
  };
  const { p50 } = (await load.request(command)) as ExchangeResult;
  const bytes = (await reportOf(service)).bytes - before.bytes;
  if (bytes < 2 * 64 * (WARM_UP + ROUND_TRIPS)) throw new Error(`the service received only ${bytes} bytes`);
  const [alone = NaN, relayed = NaN] = p50;
  const what = 'round trip of 64 bytes in an open tunnel';
  return [
    { name: `${what}, without the front, p50`, value: alone, unit: 'ms' },
    { name: `${what}, with it, p50`, value: relayed, unit: 'ms' },
    { name: 'what the front adds, p50', value: relayed - alone, unit: 'ms', aim: 0.3 },
  ];
}

/** Fails if too many connections failed, or if the service did not have each of the others. */
async function connectionFigures(scene: Scene): Promise<readonly Figure[]> {
  const { load, service, proxies, target, front: program } = scene;
  const before = await reportOf(service);
  let frontCpuMs = 0;
  const results = await inTurns(CONNECT_ROUNDS, async way => {
    const command: LoadCommand = { do: 'connect', proxy: proxies[way], target, ms: CONNECT_MS };
    const cpuMs = program.cpuMs();
    const result = (await load.request(command)) as ConnectResult;
    frontCpuMs += program.cpuMs() - cpuMs;
    await close(scene);
    return result;
  });
  const all = sumOf([...results.alone, ...results.front]);
  const bytes = (await reportOf(service)).bytes - before.bytes;
  if (bytes < all.made) throw new Error(`the service had ${bytes} connections of ${all.made}`);
  if (all.failed > MAX_FAILED * all.made)
    throw new Error(`${all.failed} connections failed, ${all.made} did not: ${all.lastFailure}`);
  const relayed = sumOf(results.front);
  const what = `connections, each with a byte and back, ${AT_ONCE} at once`;
  return [
    { name: `${what}, without the front`, value: perSecond(sumOf(results.alone)), unit: '/s' },
    { name: `${what}, with it`, value: perSecond(relayed), unit: '/s' },
    { name: 'CPU of the front for one of them', value: frontCpuMs / relayed.made, unit: 'ms' },
  ];
}

function sumOf(results: readonly ConnectResult[]): ConnectResult {
  return results.reduce((sum, one) => ({
    made: sum.made + one.made,
    failed: sum.failed + one.failed,
    lastFailure: one.lastFailure || sum.lastFailure,
    tookMs: sum.tookMs + one.tookMs,
  }));
}

function perSecond({ made, tookMs }: ConnectResult): number {
  return (1000 * made) / tookMs;
}

/** Each tunnel has had a byte and back before. */
async function idleFigure(scene: Scene): Promise<Figure> {
  const { load, proxies, target, front: program } = scene;
  const command: LoadCommand = {
    do: 'open',
    proxy: proxies.front,
    target,
    mode: 'echo',
    streams: IDLE_TUNNELS,
  };
  await load.request(command);
  await sleep(SETTLE_MS);
  const { open } = await reportOf(scene.service);
  if (open !== IDLE_TUNNELS) throw new Error(`${open} of ${IDLE_TUNNELS} tunnels are open`);
  const bytes = program.bytes();
  await close(scene);
  return {
    name: `RSS of the front with ${IDLE_TUNNELS} idle tunnels`,
    value: mb(bytes),
    unit: 'MB',
    aim: 150,
  };
}

async function reportOf(service: Scene['service']): Promise<ReceivedReport> {
  return (await service.request({})) as ReceivedReport;
}
