import { describeOwnNamespace } from '../contract/own-namespace.ts';
import { MemoryNamespace } from '../support/controllers/mesh-tailnet/namespace.ts';

describeOwnNamespace('a namespace in memory', () => Promise.resolve(new MemoryNamespace()));
