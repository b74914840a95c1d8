import { vi } from 'vitest';

/** Resolves when an expectation holds, which must be soon. */
export function soon(expectation: () => void): Promise<void> {
  return vi.waitFor(expectation, { timeout: 15_000, interval: 5 });
}
