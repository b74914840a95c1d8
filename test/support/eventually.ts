import { vi } from 'vitest';

/** Waits until an expectation holds, for as long as a machine may take that is slow and busy; gives what it gives. */
export function eventually<T>(expectation: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(expectation, { timeout: 60_000, interval: 5 });
}
