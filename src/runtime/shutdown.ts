import type { Clock } from '../api/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { Readiness } from '../telemetry/readiness.ts';
import { endsWithin, systemClock } from './clock.ts';
import type { DrainOptions, RunningController } from './controller.ts';

/** The signals that stop a process, and its exit code at the second one. */
const EXIT_CODES = { SIGTERM: 143, SIGINT: 130 } as const;

type Signal = keyof typeof EXIT_CODES;

/** Where signals come from, such as the process. */
interface Signals {
  on(signal: Signal, call: (signal: Signal) => void): unknown;
}

/** A step of an orderly shutdown. */
export type ShutdownStep = { readonly name: string; readonly run: () => void | Promise<void> };

export type ShutdownDeps = {
  readonly signals: Signals;
  readonly clock: Clock;
  readonly log: Log;
  readonly steps: readonly ShutdownStep[];
  /** The process exits after this time, whether or not the steps are done. */
  readonly timeoutMs: number;
  readonly exit: (code: number) => void;
};

/** At the first signal, runs the steps in order and exits: with 0, or 1 if one failed. Exits at once at the second signal. */
export function shutDownOnSignal({ signals, clock, log, steps, timeoutMs, exit }: ShutdownDeps): void {
  let isStopping = false;
  const handle = (signal: Signal) => {
    if (isStopping) {
      log.warn('exiting at once', { signal });
      exit(EXIT_CODES[signal]);
      return;
    }
    isStopping = true;
    log.info('stopping', { signal });
    void stop().then(isClean => exit(isClean ? 0 : 1));
  };
  const stop = async () => {
    const failed: string[] = [];
    const all = runSteps(steps, failed, log);
    if (await endsWithin(clock, timeoutMs, all)) return failed.length === 0;
    log.error('shutdown timed out', { seconds: timeoutMs / 1000 });
    return false;
  };
  for (const signal of Object.keys(EXIT_CODES) as Signal[]) signals.on(signal, handle);
}

/** A step that fails does not keep the next ones from running. */
async function runSteps(steps: readonly ShutdownStep[], failed: string[], log: Log): Promise<void> {
  for (const { name, run } of steps) {
    try {
      await run();
    } catch (error) {
      log.error('a shutdown step failed', { step: name, error });
      failed.push(name);
    }
  }
}

/** The first steps of every process that runs controllers, in the order that they need; leases are released after them. */
export function controllerSteps(
  controllers: readonly RunningController[],
  readiness: Readiness,
  options: DrainOptions,
  log: Log,
): readonly ShutdownStep[] {
  return [
    { name: 'become unready', run: () => readiness.stop() },
    { name: 'start no more reconciles', run: () => controllers.forEach(controller => controller.stop()) },
    {
      name: 'drain reconciles',
      run: async () => {
        const left = await Promise.all(controllers.map(controller => controller.drain(options)));
        if (left.flat().length > 0) log.warn('reconciles did not end', { objects: left.flat() });
      },
    },
  ];
}

/** A started process. */
export type Running = {
  readonly telemetry: { readonly log: Log };
  /** Fulfilled once it serves; rejected where it cannot. */
  readonly started: Promise<unknown>;
  /** The steps of its shutdown, in order. */
  readonly steps: readonly ShutdownStep[];
};

/** Below the 30 s that Kubernetes grants a pod by default. */
const TIMEOUT_MS = 25_000;

/** Runs a process until a signal ends it; where it cannot start, shuts it down and fails with the reason. */
export async function runUntilSignal(
  { telemetry, started, steps }: Running,
  process: Pick<ShutdownDeps, 'signals' | 'exit'>,
): Promise<void> {
  shutDownOnSignal({ ...process, clock: systemClock, log: telemetry.log, steps, timeoutMs: TIMEOUT_MS });
  try {
    await started;
  } catch (error) {
    for (const { run } of steps) await run();
    throw error;
  }
}
