import type { HealthMonitor } from '../../../src/health/health.ts';
import { createMonitor } from '../../../src/health/monitor.ts';
import type { Probe, ProbeResult } from '../../../src/health/check.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { healthMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { VirtualClock } from '../virtual-clock.ts';

/** What the service at an address does: `hang` ends at the timeout of the check. */
type Behaviour = ProbeResult | 'hang';

type Start = { readonly address: string; readonly at: number };

export const success: ProbeResult = { is: 'success' };
export const refused: ProbeResult = { is: 'failure', error: 'connection refused', code: 'ECONNREFUSED' };
export const unknown: ProbeResult = { is: 'unknown', why: 'no mesh pod is ready' };

export type ScriptedMonitor = {
  readonly monitor: HealthMonitor;
  readonly clock: VirtualClock;
  /** Sets what the service at an address does; it succeeds by default. */
  readonly behave: (address: string, behaviour: Behaviour) => void;
  /** The probes that started. */
  readonly starts: readonly Start[];
  /** The addresses of which a probe runs. */
  readonly running: ReadonlySet<string>;
  readonly lines: () => readonly Readonly<Record<string, unknown>>[];
  readonly metrics: () => Promise<string>;
};

/** How long the probe of a service that neither hangs takes. */
const PROBE_MS = 10;

/** A monitor on a virtual clock, with a probe that a test scripts. */
export function scriptedMonitor(options: { readonly concurrency?: number } = {}): ScriptedMonitor {
  const clock = new VirtualClock();
  const behaviours = new Map<string, Behaviour>();
  const starts: Start[] = [];
  const running = new Set<string>();
  const probe: Probe = ({ target: { addresses }, timeoutMs }, signal) => {
    const address = addresses.join();
    starts.push({ address, at: clock.now() });
    running.add(address);
    return new Promise(resolve => {
      const behaviour = behaviours.get(address) ?? success;
      const end = (result: ProbeResult) => {
        cancel();
        running.delete(address);
        resolve(result);
      };
      const isHanging = behaviour === 'hang';
      const cancel = clock.after(isHanging ? timeoutMs : PROBE_MS, () =>
        end(
          isHanging
            ? { is: 'failure', error: `timeout after ${timeoutMs / 1000}s`, code: 'TIMEOUT' }
            : behaviour,
        ),
      );
      signal.addEventListener('abort', () => end({ is: 'unknown', why: 'aborted' }), { once: true });
    });
  };
  const text: string[] = [];
  const registry = createRegistry({ metrics: healthMetrics, version: 'test' });
  const monitor = createMonitor({
    probe,
    clock,
    now: () => new Date(clock.now()),
    random: fractions(),
    record: registry.record,
    log: createLog({ level: 'debug', to: { write: line => void text.push(line) } }),
    concurrency: options.concurrency ?? 256,
  });
  return {
    monitor,
    clock,
    behave: (address, behaviour) => void behaviours.set(address, behaviour),
    starts,
    running,
    lines: () => text.map(line => JSON.parse(line) as Readonly<Record<string, unknown>>),
    metrics: () => registry.text(),
  };
}

/** The same sequence in every run, spread over 0 to 1. */
function fractions(): () => number {
  let last = 0;
  return () => (last = (last + 0.618_034) % 1);
}
