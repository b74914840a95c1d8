/** Run by the bench `front`, bundled as the product is: a front on loopback, which ends with its standard input. */
import { destinationText } from '../../src/api/front.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { dialOn } from '../../src/serving/dial.ts';
import { Front } from '../../src/serving/front.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { frontMetrics } from '../../src/telemetry/metrics.ts';
import { createRegistry } from '../../src/telemetry/registry.ts';
import type { FrontProgramOptions } from './scene.ts';

const { socket, target, maxConnections } = JSON.parse(process.argv[2] ?? '') as FrontProgramOptions;
const log = createLog({ level: 'warn', to: process.stderr });
const { record } = createRegistry({ metrics: frontMetrics, version: 'bench' });
const front = new Front(
  { addresses: ['127.0.0.1'], port: 0, maxConnections },
  { dial: dialOn(socket, systemClock), clock: systemClock, log, record },
);
await front.listen();
front.update({
  callers: { addresses: new Set(['127.0.0.1']), ranges: ['10.0.0.0/8'] },
  destinations: new Set([destinationText(target.host, target.port)]),
});
console.log(JSON.stringify({ port: front.ports[0] }));
process.stdin.resume().once('end', () => front.close());
