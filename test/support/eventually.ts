import { vi } from 'vitest';

/** Waits until an expectation holds, up to a minute for a slow machine; returns its result. */
export function eventually<T>(expectation: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(expectation, { timeout: 60_000, interval: 5 });
}
