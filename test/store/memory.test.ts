import { createMemory } from '../support/store/memory.ts';
import { describeResources } from '../contract/resources.ts';

describeResources('resources in memory', ({ indexes, first, reportFailure }) => {
  const memory = createMemory(indexes, first, { reportFailure });
  return Promise.resolve({ ...memory, close: () => Promise.resolve() });
});
