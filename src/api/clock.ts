/** The time, and being woken: all waiting of ours goes through it, so that a test can own the time. */
export interface Clock {
  /** Milliseconds since some moment of the past; never goes back. */
  now(): number;
  /** Calls once when so many milliseconds have gone by, never before; gives the function that prevents it. */
  after(ms: number, call: () => void): () => void;
  /** Calls once, after the input and output that is ready has had its turn. */
  soon(call: () => void): void;
}
