import { gatherCallers } from '../../../../../src/store/callers.ts';

/** What the relays controller reads for the front of mesh pods, where a test is about something else: nothing is known. */
export const UNKNOWN_FRONT = {
  callers: gatherCallers(),
  enforcement: { current: () => 'unknown' as const, subscribe: () => () => undefined },
} as const;
