import type { Clock } from '../api/clock.ts';

/** Whether something ends, well or not, before so much time has gone by. */
export function endsWithin(clock: Clock, ms: number, something: Promise<unknown>): Promise<boolean> {
  return new Promise(resolve => {
    const cancel = clock.after(ms, () => resolve(false));
    const end = () => {
      cancel();
      resolve(true);
    };
    something.then(end, end);
  });
}
