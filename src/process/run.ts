import { systemClock } from '../runtime/clock.ts';
import { stopOnSignal } from '../runtime/stop.ts';
import type { StopParts, StopStep } from '../runtime/stop.ts';
import type { ProcessTelemetry } from './telemetry.ts';

/** What runs until a signal comes. */
export type Running = {
  readonly telemetry: ProcessTelemetry;
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
