import type { Key } from '../../api/key.ts';
import type { LoadAssignmentResult } from '../../traffic/load-assignment.ts';
import type { Follower } from '../dependency-cache.ts';

/** What a cluster is assigned for one Gateway, with where it comes from. */
export type SourcedAssignment = LoadAssignmentResult & {
  /** The object behind each backend, by the position of the backend in the rule. */
  readonly objects: ReadonlyMap<number, Key>;
};

/** What clusters are assigned; a Gateway is told as Envoys tell it, which is `namespace/name`. */
export interface Assignments {
  /** Nothing where the name of the cluster means nothing to us. */
  find(cluster: string, gateway: string): SourcedAssignment | undefined;
  /** Tells each time that what was found since may be different now. */
  follow(cluster: string, gateway: string, follower: Follower): void;
  unfollow(cluster: string, gateway: string, follower: Follower): void;
}
