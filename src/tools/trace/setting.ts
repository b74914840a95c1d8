import type { Subject } from '../../api/problem.ts';

/** What objects set for a route or a rule, or that an object sets nothing because another one does. */
export type Setting = {
  /** The closest first, which takes from the others what it does not set. */
  readonly by: readonly Subject[];
  readonly isApplied: boolean;
  /** For users. */
  readonly text: string;
};
