/** The time and timers; every wait goes through it, so that tests control the time. */
export interface Clock {
  /** Milliseconds since an arbitrary time in the past; monotonic. */
  now(): number;
  /** Calls once after a time in milliseconds, never before; returns the function that cancels it. */
  after(ms: number, call: () => void): () => void;
  /** Calls once, after the event loop has processed input and output that is ready. */
  soon(call: () => void): void;
}

/** A time in RFC 3339, without fractions of seconds, as API servers store it. */
export function inSeconds(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}
