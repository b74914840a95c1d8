import { inject } from 'vitest';
import type { Cluster } from '../../../lab/cluster/cluster-folder.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    readonly cluster: Cluster;
  }
}

/** The cluster that the tests run against: one that runs already, or one that was started for them. */
export function testCluster(): Cluster {
  return inject('cluster');
}
