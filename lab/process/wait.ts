import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from './errors.ts';

/** How long to wait, and how often to check. */
export type WaitOptions = { readonly timeoutMs?: number; readonly everyMs?: number };

/** Longer than anything takes on a slow and busy machine. */
export const DEFAULT_TIMEOUT_MS = 120_000;

/**
 * Polls until `check` returns a value other than false, and returns that. After the timeout it fails with what it waited
 * for and the last error of `check`, or what that noted last.
 */
export async function until<T>(
  what: string,
  check: (note: (seen: string) => void) => Promise<T | false | undefined> | T | false | undefined,
  { timeoutMs = DEFAULT_TIMEOUT_MS, everyMs = 50 }: WaitOptions = {},
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let lastSeen = 'nothing';
  for (;;) {
    try {
      const found = await check(seen => (lastSeen = seen));
      if (found !== undefined && found !== false) return found;
    } catch (error) {
      lastSeen = messageOf(error);
    }
    if (performance.now() >= deadline) {
      throw new Error(`waited ${timeoutMs / 1000} s for ${what}; last seen: ${lastSeen}`);
    }
    await sleep(everyMs);
  }
}
