/**
 * A process with one controller that is always reconciling one object, as its first argument describes; runs may go
 * on for the milliseconds of the second argument at shutdown.
 */
import { createMemory } from '../store/memory.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { startController } from '../../../src/runtime/controller.ts';
import type { Outcome } from '../../../src/runtime/queue/queue.ts';
import type { RunContext } from '../../../src/runtime/runs.ts';
import { controllerSteps, shutDownOnSignal } from '../../../src/runtime/shutdown.ts';
import { Tracking } from '../../../src/store/tracking.ts';
import { createActivities } from '../../../src/telemetry/activity.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { controllerMetrics, queueMetrics } from '../../../src/telemetry/metrics.ts';
import { createReadiness } from '../../../src/telemetry/readiness.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { named } from '../declared.ts';
import { meshTailnet } from '../objects.ts';

const log = createLog({ level: 'info' });
const readiness = createReadiness();
const metrics = createRegistry({ metrics: { ...controllerMetrics, ...queueMetrics }, version: 'test' });
const memory = createMemory([], [named(meshTailnet(), 'example')]);

const isReady = () => readiness.failures().size === 0;
const wait = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms));

async function untilUnready(): Promise<void> {
  while (isReady()) await wait(10);
}

const BEHAVIOURS: Readonly<Record<string, (context: RunContext) => Promise<unknown>>> = {
  'ends soon': untilUnready,
  'obeys its signal': ({ signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
  'never ends': () => new Promise(() => undefined),
};

const controller = startController(
  {
    name: 'busy',
    kind: 'MeshTailnet',
    reads: [],
    reconcile: async (_ref, _read, context): Promise<Outcome> => {
      log.info('started');
      await BEHAVIOURS[process.argv[2] ?? '']?.(context);
      log.info('ended', { ready: isReady() });
      return { requeue: 'after', ms: 0 };
    },
  },
  {
    tracking: new Tracking(memory.read),
    clock: systemClock,
    telemetry: { log, metrics, activities: createActivities() },
  },
  { concurrency: 1, syncPeriodMs: 30_000 },
);

shutDownOnSignal({
  signals: process,
  clock: systemClock,
  log,
  steps: [
    ...controllerSteps([controller], readiness, { graceMs: Number(process.argv[3]), abortMs: 100 }, log),
    { name: 'release', run: () => log.info('released') },
  ],
  timeoutMs: 120_000,
  exit: code => process.exit(code),
});
await memory.start();
