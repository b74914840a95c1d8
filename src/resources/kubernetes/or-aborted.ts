/** Waits for something that others may wait for too, but not after the signal. */
export function orAborted<T>(something: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    const settled = () => signal.removeEventListener('abort', abort);
    something.finally(settled).then(resolve, reject);
  });
}
