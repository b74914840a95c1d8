import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from './errors.ts';

/** How long to wait, and how often to look. */
export type Patience = { readonly timeoutMs?: number; readonly everyMs?: number };

/** Nothing of the lab takes as long, but for a machine that is slow and busy may. */
export const PATIENCE_MS = 120_000;

/**
 * Looks again and again until there is something, and gives it. After the time is over it fails with what it waited
 * for and the last thing that kept it waiting: an error's text, or what the look itself noted.
 */
export async function waitFor<T>(
  what: string,
  look: (note: (seen: string) => void) => Promise<T | undefined>,
  { timeoutMs = PATIENCE_MS, everyMs = 50 }: Patience = {},
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let lastSeen = 'nothing';
  for (;;) {
    try {
      const found = await look(seen => (lastSeen = seen));
      if (found !== undefined) return found;
    } catch (error) {
      lastSeen = messageOf(error);
    }
    if (performance.now() >= deadline) {
      throw new Error(`waited ${timeoutMs / 1000} s for ${what}; last seen: ${lastSeen}`);
    }
    await sleep(everyMs);
  }
}
