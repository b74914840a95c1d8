import type { FrontState } from '../../../../../src/controllers/mesh-tailnet/pool/front-condition.ts';
import { createPublished } from '../../../../../src/runtime/published.ts';
import { gatherCallers } from '../../../../../src/store/callers.ts';

/** What the relays controller reads for the front of mesh pods, where a test is about something else: nothing is known. */
export const UNKNOWN_FRONT = {
  callers: gatherCallers(),
  fronts: createPublished<FrontState>(),
  enforcement: { current: () => 'unknown' as const, subscribe: () => () => undefined },
} as const;
