import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from './errors.ts';
import { isRunning, tailOf } from './process.ts';
import type { StateFolder } from './state-folder.ts';

const LOOK_EVERY_MS = 200;

/**
 * Starts what runs together in a folder, and notes that it is whole. When one of its processes ends before, or when it
 * is told to stop, or fails, everything that was started is ended and the folder removed: `start` is told by the signal,
 * and must start nothing more after it. It then fails with why, which is the signal's reason where it was told to stop;
 * when not all could be ended, with that as well.
 */
export async function startWhole<Whole>(
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
    over.abort(new Error('it is whole'));
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

/** Never gives anything: fails when a process has ended, with its log, or when the signal comes. */
async function failure(folder: StateFolder<unknown>, signal: AbortSignal): Promise<never> {
  for (;;) {
    signal.throwIfAborted();
    const ended = folder.processes().find(record => !isRunning(record));
    if (ended) throw new Error(`${ended.name} has ended:\n${tailOf(ended)}`);
    await sleep(LOOK_EVERY_MS, undefined, { signal });
  }
}
