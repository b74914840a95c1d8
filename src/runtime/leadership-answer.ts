import type { Clock } from '../api/clock.ts';

/** What came of a request: its answer, or why there is none. */
export type Answer<T> = { readonly value: T } | { readonly error: unknown };

/** The answer of a request, if it comes before so much time has gone by; one that comes later is not heard. */
export function answerWithin<T>(
  clock: Clock,
  ms: number,
  request: (signal: AbortSignal) => Promise<T>,
): Promise<Answer<T>> {
  return new Promise(resolve => {
    const abort = new AbortController();
    const cancel = clock.after(ms, () => {
      const error = new Error(`no answer within ${Math.round(ms)} ms`);
      resolve({ error });
      abort.abort(error);
    });
    const end = (answer: Answer<T>) => {
      cancel();
      resolve(answer);
    };
    request(abort.signal).then(
      value => end({ value }),
      (error: unknown) => end({ error }),
    );
  });
}
