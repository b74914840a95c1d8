/** Run by the bench `relay`, bundled as the product is: a relay with some ports, which ends with its standard input. */
import { startRelay } from '../../src/relay/relay.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { relayMetrics } from '../../src/telemetry/metrics.ts';
import { createRegistry } from '../../src/telemetry/registry.ts';
import type { RelayProgramOptions } from './scene.ts';

const options = JSON.parse(process.argv[2] ?? '') as RelayProgramOptions;
const log = createLog({ level: 'warn', to: process.stderr });
const metrics = createRegistry({ metrics: relayMetrics, version: 'bench' });
const relay = startRelay(
  {
    addresses: ['127.0.0.1'],
    socks: options.socks,
    idleMs: 600_000,
    maxAssociations: options.maxAssociations,
  },
  { log, metrics, clock: systemClock },
);
const bytesBefore = process.memoryUsage.rss();
const startedAt = performance.now();
await relay.update(new Map(options.ports.map(port => [port, options.target])));
const listening = { tookMs: performance.now() - startedAt, bytes: process.memoryUsage.rss() - bytesBefore };
if (relay.failed().size > 0) throw new Error(`${relay.failed().size} ports could not be bound`);
console.log(JSON.stringify(listening));
process.stdin.resume().once('end', () => void relay.close());
