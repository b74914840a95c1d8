/**
 * Run by the bench `front`, bundled as the product is: a front on loopback, and what shares its process, a relay and a listener of
 * a VIP service; ends with its standard input.
 */
import { destinationText } from '../../src/api/front.ts';
import { startRelay } from '../../src/relay/relay.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { dialOn } from '../../src/serving/dial.ts';
import { Front } from '../../src/serving/front.ts';
import { Hops } from '../../src/serving/hops.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { frontMetrics, relayMetrics } from '../../src/telemetry/metrics.ts';
import { createRegistry } from '../../src/telemetry/registry.ts';
import type { FrontProgramOptions } from './scene.ts';

const { socket, socks, target, datagrams, relayPort, maxConnections } = JSON.parse(
  process.argv[2] ?? '',
) as FrontProgramOptions;
const log = createLog({ level: 'warn', to: process.stderr });
const metrics = createRegistry({ metrics: { ...frontMetrics, ...relayMetrics }, version: 'bench' });
const deps = { dial: dialOn(socket, systemClock), clock: systemClock, log };
const host = '127.0.0.1';
const front = new Front({ addresses: [host], port: 0, maxConnections }, { ...deps, record: metrics.record });
await front.listen();
front.update({
  callers: { addresses: new Set([host]), ranges: ['10.0.0.0/8'] },
  destinations: new Set([destinationText(target.host, target.port)]),
});
const relay = startRelay(
  { addresses: [host], socks, idleMs: 600_000, maxAssociations: 64 },
  { log, metrics, clock: systemClock },
);
await relay.update(new Map([[relayPort, { address: datagrams.host, port: datagrams.port }]]));
const hops = new Hops({ maxConnections }, deps);
const [hop = ''] = (await hops.open(new Set([`${target.host}:${target.port}`]))).values();
console.log(JSON.stringify({ port: front.ports[0], hop: Number(hop.split(':').at(-1)) }));
process.stdin.resume().once('end', () => {
  front.close();
  void Promise.all([relay.close(), hops.close()]);
});
