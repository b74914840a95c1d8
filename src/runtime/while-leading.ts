import { ResourceError } from '../resources/resources.ts';
import type { WriteResources } from '../resources/resources.ts';
import type { Leadership } from './leader-election/leadership.ts';

/**
 * Writes that fail as Unavailable unless this process leads at the moment of the call, or if it loses leadership before
 * they are done. A write that was sent before the loss may still be carried out.
 */
export function whileLeading(write: WriteResources, leadership: Pick<Leadership, 'signal'>): WriteResources {
  const fenced = (call: () => Promise<void>): Promise<void> =>
    new Promise((resolve, reject) => {
      const lost = leadership.signal();
      const refuse = () => reject(new ResourceError('Unavailable', 'this process does not lead (any more)'));
      if (lost.aborted) {
        refuse();
        return;
      }
      lost.addEventListener('abort', refuse, { once: true });
      const end = () => lost.removeEventListener('abort', refuse);
      call().finally(end).then(resolve, reject);
    });
  return {
    replaceStatus: (object, status) => fenced(() => write.replaceStatus(object, status)),
    addFinalizer: (object, finalizer) => fenced(() => write.addFinalizer(object, finalizer)),
    removeFinalizer: (object, finalizer) => fenced(() => write.removeFinalizer(object, finalizer)),
    apply: object => fenced(() => write.apply(object)),
    remove: ref => fenced(() => write.remove(ref)),
  };
}
