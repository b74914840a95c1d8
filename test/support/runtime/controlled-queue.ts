import { Queue } from '../../../src/runtime/queue/queue.ts';
import type { QueueObserver } from '../../../src/runtime/queue/queue.ts';
import { VirtualClock } from '../virtual-clock.ts';
import { ControlledWork } from './controlled-work.ts';
import { namespaceOf } from './queue-model.ts';

export const noObserver: QueueObserver = {
  added: () => undefined,
  waited: () => undefined,
  retried: () => undefined,
};

/** A queue with a clock and work that the test controls. */
export function queueOf({ concurrency = 1, observer = noObserver } = {}) {
  const clock = new VirtualClock();
  const work = new ControlledWork(clock);
  const queue = new Queue<string>({ clock, work: work.perform, concurrency, observer, namespaceOf });
  return { clock, work, queue };
}
