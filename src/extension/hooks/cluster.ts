import type { ClusterNeeds } from '../../traffic/cluster-needs.ts';
import type { MeshCluster } from '../cluster.ts';
import { ClusterSchema } from '../proto/envoy/config/cluster/v3_pb.ts';
import { textOf } from '../wire.ts';
import type { Attempts } from './attempts.ts';
import { answerWith } from './embedded.ts';

/** What clusters are to be made of. */
export type ClusterParts = {
  readonly needsOf: (cluster: string) => ClusterNeeds | undefined;
  readonly meshCluster: MeshCluster;
  readonly attempts: Attempts;
};

/** Answers PostClusterModify: the cluster, made to have what it needs if it serves a mesh backend. */
export function answerCluster(
  request: Uint8Array,
  { needsOf, meshCluster, attempts }: ClusterParts,
): Uint8Array {
  return answerWith(request, cluster => {
    const name = textOf(cluster, ClusterSchema.field.name.number) ?? '';
    return attempts.change('cluster', name, cluster, () => {
      const needs = needsOf(name);
      if (!needs) return cluster;
      attempts.served('cluster');
      return meshCluster(cluster, needs);
    });
  });
}
