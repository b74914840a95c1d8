/** Signals of those who ask. One may belong to many requests, and Node warns of many listeners: it gets one. */
export class AskerSignals {
  readonly #known = new Map<AbortSignal, Known>();

  /** Calls when a signal is aborted; gives the function that prevents it. */
  add(signal: AbortSignal, call: () => void): () => void {
    const known = this.#known.get(signal) ?? this.#meet(signal);
    // The same function may be given twice.
    const own = () => call();
    known.calls.add(own);
    return () => {
      known.calls.delete(own);
      if (known.calls.size === 0) this.#forget(signal);
    };
  }

  #meet(signal: AbortSignal): Known {
    const calls = new Set<() => void>();
    const listener = () => {
      this.#known.delete(signal);
      for (const call of calls) call();
    };
    signal.addEventListener('abort', listener, { once: true });
    const known = { calls, listener };
    this.#known.set(signal, known);
    return known;
  }

  #forget(signal: AbortSignal): void {
    const listener = this.#known.get(signal)?.listener;
    if (listener) signal.removeEventListener('abort', listener);
    this.#known.delete(signal);
  }
}

type Known = { readonly calls: Set<() => void>; readonly listener: () => void };
