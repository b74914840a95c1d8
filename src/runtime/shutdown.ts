import type { Log } from '../telemetry/log.ts';
import type { Readiness } from '../telemetry/readiness.ts';
import type { Clock } from '../api/clock.ts';
import type { DrainLimits, RunningController } from './controller.ts';
import { endsWithin, systemClock } from './clock.ts';

/** The signals that end a process, and the exit codes that tell of them. */
const EXIT_CODES = { SIGTERM: 143, SIGINT: 130 } as const;

type Signal = keyof typeof EXIT_CODES;

/** Where signals come from, such as the process. */
interface Signals {
  on(signal: Signal, call: (signal: Signal) => void): unknown;
}

/** One thing to be done before the process ends. */
export type StopStep = { readonly name: string; readonly run: () => void | Promise<void> };

/** What stopping works with. */
export type StopParts = {
  readonly signals: Signals;
  readonly clock: Clock;
  readonly log: Log;
  readonly steps: readonly StopStep[];
  /** After this time the process ends, whatever is left to be done. */
  readonly limitMs: number;
  readonly exit: (code: number) => void;
};

/** At the first signal, does the steps one after the other and exits: with 0, or 1 if one failed; at the second at once. */
export function stopOnSignal({ signals, clock, log, steps, limitMs, exit }: StopParts): void {
  let isStopping = false;
  const hear = (signal: Signal) => {
    if (isStopping) {
      log.warn('exiting at once', { signal });
      exit(EXIT_CODES[signal]);
      return;
    }
    isStopping = true;
    log.info('stopping', { signal });
    void stopped().then(isClean => exit(isClean ? 0 : 1));
  };
  const stopped = async () => {
    const failed: string[] = [];
    const all = doAll(steps, failed, log);
    if (await endsWithin(clock, limitMs, all)) return failed.length === 0;
    log.error('stopping took too long', { seconds: limitMs / 1000 });
    return false;
  };
  for (const signal of Object.keys(EXIT_CODES) as Signal[]) signals.on(signal, hear);
}

/** A step that fails does not keep the next ones from being done. */
async function doAll(steps: readonly StopStep[], failed: string[], log: Log): Promise<void> {
  for (const { name, run } of steps) {
    try {
      await run();
    } catch (error) {
      log.error('a step of stopping failed', { step: name, error });
      failed.push(name);
    }
  }
}

/** The first steps of every process that runs controllers, in the one right order; leases are released after them. */
export function stepsOf(
  controllers: readonly RunningController[],
  readiness: Readiness,
  limits: DrainLimits,
  log: Log,
): readonly StopStep[] {
  return [
    { name: 'become unready', run: () => readiness.stop() },
    { name: 'take no more work', run: () => controllers.forEach(controller => controller.stop()) },
    {
      name: 'let work end',
      run: async () => {
        const left = await Promise.all(controllers.map(controller => controller.drain(limits)));
        if (left.flat().length > 0) log.warn('reconciles did not end', { objects: left.flat() });
      },
    },
  ];
}

/** What runs until a signal comes. */
export type Running = {
  readonly telemetry: { readonly log: Log };
  /** Fulfilled once it does its work; rejected where it never will. */
  readonly begun: Promise<unknown>;
  /** What ends it, in this order. */
  readonly steps: readonly StopStep[];
};

/** A second signal ends the process at once, and this time in any case. */
const LIMIT_MS = 25_000;

/** Lets something run until a signal ends the process; where it cannot begin, ends it and fails with why. */
export async function runUntilSignal(
  { telemetry, begun, steps }: Running,
  process: Pick<StopParts, 'signals' | 'exit'>,
): Promise<void> {
  stopOnSignal({ ...process, clock: systemClock, log: telemetry.log, steps, limitMs: LIMIT_MS });
  try {
    await begun;
  } catch (error) {
    for (const { run } of steps) await run();
    throw error;
  }
}
