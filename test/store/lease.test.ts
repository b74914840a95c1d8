import { createMemoryLease } from '../support/store/memory-lease.ts';
import { describeLease } from '../contract/lease.ts';

describeLease('a lease in memory', () => {
  const { lease, author } = createMemoryLease();
  const done = (act: () => void) => Promise.resolve().then(act);
  return Promise.resolve({
    lease,
    another: lease,
    author: { put: hold => done(() => author.put(hold)), remove: () => done(() => author.remove()) },
    close: () => Promise.resolve(),
  });
});
