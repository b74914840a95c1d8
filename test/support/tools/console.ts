import { afterEach, beforeEach, vi } from 'vitest';

/** What a command prints in a test, a text for each line or block. */
type Printed = { out: string[]; err: string[] };

/** Keeps what the tests of a file print, in place of printing it. */
export function captureConsole(): Readonly<Printed> {
  const printed: Printed = { out: [], err: [] };
  beforeEach(() => {
    [printed.out, printed.err] = [[], []];
    vi.spyOn(console, 'log').mockImplementation((text: string) => void printed.out.push(text));
    vi.spyOn(console, 'error').mockImplementation((text: string) => void printed.err.push(text));
  });
  afterEach(() => vi.restoreAllMocks());
  return printed;
}
