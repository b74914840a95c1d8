import type { HeapProfiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { encodeProfile, frameOf } from './profile.ts';
import type { Frame, StackSample } from './profile.ts';

/** A sampling heap profiler. */
export interface HeapWatch {
  /** A pprof profile of the memory in use, or of what is left after a garbage collection. */
  profile(after: 'now' | 'collection'): Promise<Uint8Array>;
  stop(): void;
}

/** Bytes per sample: Go's default, whose cost is not measurable. */
const BYTES_PER_SAMPLE = 512 * 1024;

const COMMENTS = [
  'inuse_space: bytes on the heap of JavaScript, estimated from samples; memory of Buffers is not on it',
  'samples: sampled allocations; V8 does not report how many objects each represents',
];

/** Starts to sample allocations until it is stopped. */
export async function watchHeap(): Promise<HeapWatch> {
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.enable');
  await session.post('HeapProfiler.startSampling', { samplingInterval: BYTES_PER_SAMPLE });
  return {
    profile: async after => {
      if (after === 'collection') await session.post('HeapProfiler.collectGarbage');
      const { profile } = await session.post('HeapProfiler.getSamplingProfile');
      return encodeProfile({
        kinds: [
          { type: 'samples', unit: 'count' },
          { type: 'inuse_space', unit: 'bytes' },
        ],
        samples: samplesOf(profile as Sampled),
        period: { type: 'space', unit: 'bytes', every: BYTES_PER_SAMPLE },
        timeMs: Date.now(),
        comments: COMMENTS,
      });
    },
    stop: () => session.disconnect(),
  };
}

/** V8's profile, which has more fields than Node's types. */
type Node = HeapProfiler.SamplingHeapProfileNode & {
  readonly id: number;
  readonly children: readonly Node[];
};
type Sampled = { readonly head: Node; readonly samples: readonly { readonly nodeId: number }[] };

/** One sample for each node of the call tree that allocated; the size of a node excludes that of its children. */
function samplesOf({ head, samples }: Sampled): readonly StackSample[] {
  const counts = new Map<number, number>();
  for (const { nodeId } of samples) counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
  const found: StackSample[] = [];
  const visit = (node: Node, around: readonly Frame[]): void => {
    const stack = node === head ? around : [frameOf(node.callFrame), ...around];
    if (node.selfSize > 0) found.push({ stack, values: [counts.get(node.id) ?? 0, node.selfSize] });
    for (const child of node.children) visit(child, stack);
  };
  visit(head, []);
  return found;
}
