import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from './errors.ts';
import { isRunning, tailOf } from './process.ts';
import type { StateFolder } from './state-folder.ts';

const CHECK_MS = 200;

/**
 * Starts processes that run together in a folder, and records when all of them run. If one of them ends before, `start`
 * fails or `stop` is aborted, everything that was started is ended and the folder removed; `start` must start nothing
 * after its signal. It then fails with the first error, or the reason of `stop`, and with what could not be ended.
 */
export async function startTogether<Whole>(
  folder: StateFolder<Whole>,
  stop: AbortSignal,
  start: (stop: AbortSignal) => Promise<Whole>,
): Promise<Whole> {
  const over = new AbortController();
  const signal = AbortSignal.any([stop, over.signal]);
  try {
    stop.throwIfAborted();
    const whole = await Promise.race([start(signal), failure(folder, signal)]);
    folder.finish(whole);
    over.abort(new Error('all of it runs'));
    return whole;
  } catch (error) {
    const why: unknown = stop.aborted ? stop.reason : error;
    over.abort(why);
    await folder.remove().catch((failure: unknown) => {
      throw new Error(`${messageOf(why)}\nand not all could be ended: ${messageOf(failure)}`, { cause: why });
    });
    throw why;
  }
}

/** Fails when a process has ended, with its log, or when the signal is aborted. */
async function failure(folder: StateFolder<unknown>, signal: AbortSignal): Promise<never> {
  for (;;) {
    signal.throwIfAborted();
    const ended = folder.processes().find(record => !isRunning(record));
    if (ended) throw new Error(`${ended.name} has ended:\n${tailOf(ended)}`);
    await sleep(CHECK_MS, undefined, { signal });
  }
}
