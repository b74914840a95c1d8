import { keyOf } from '../api/key.ts';
import type { Key } from '../api/key.ts';
import { isMeshBackend } from '../api/references.ts';
import type { ReadResources } from '../resources/resources.ts';
import { assignmentOf } from '../traffic/assignment-of.ts';
import { parseClusterName } from '../traffic/cluster-name.ts';
import { clusterNeedsOf } from '../traffic/cluster-needs-of.ts';
import type { ClusterNeeds } from '../traffic/cluster-needs.ts';
import type { DataPathMode } from '../traffic/data-path.ts';
import type { Declared } from '../traffic/declared.ts';
import { meshRuleOf } from '../traffic/mesh-rule.ts';
import { sharingBackends } from '../traffic/rule.ts';
import type { MeshRule } from '../traffic/rule.ts';
import type { SourcedAssignment } from './eds/assigned.ts';
import type { UnusedOfCluster } from './eds/unresolved.ts';
import type { BackendCluster } from './hooks/route.ts';

/** What the name of a cluster means. */
export type Meaning = { readonly rule: MeshRule; readonly needs: ClusterNeeds | undefined };

/** Most names that hooks ask about are of others, and told apart without noting on what that depends. */
export function mayBeMesh(read: ReadResources, cluster: string): boolean {
  const name = parseClusterName(cluster);
  const route = name && read.get({ kind: name.kind, namespace: name.namespace, name: name.name });
  return route?.rules.some(({ backendRefs }) => backendRefs.some(isMeshBackend)) === true;
}

/** What the name of a cluster means, or nothing where it is none of ours. */
export function meaningOf(cluster: string, declared: Declared): Meaning | undefined {
  const name = parseClusterName(cluster);
  const rule = name && meshRuleOf(declared, name);
  return rule && { rule, needs: clusterNeedsOf(rule) };
}

/** What a cluster is assigned by a way into the mesh; nothing where it is to be left alone. */
export function sourcedAssignment(
  meaning: Meaning | undefined,
  pathOf: (rule: MeshRule) => DataPathMode,
): SourcedAssignment | undefined {
  if (!meaning?.needs) return undefined;
  const { rule, needs } = meaning;
  const { assignment, unused } = assignmentOf(rule, needs, pathOf(rule));
  const objects = rule.backends.map(({ index, ref: { namespace, name } }): [number, Key] => [
    index,
    keyOf({ kind: 'MeshEndpoints', namespace, name }),
  ]);
  return { assignment, unused: [...rule.unused, ...unused], objects: new Map(objects) };
}

/** What gets no traffic of a rule whose endpoints Envoys do not get from us. */
export function unusedOf(
  meaning: Meaning | undefined,
  pathOf: (rule: MeshRule) => DataPathMode,
): readonly UnusedOfCluster[] {
  if (!meaning || meaning.needs?.endpointsFrom === 'us') return [];
  const { cluster, unused } = meaning.rule;
  return [{ cluster: cluster.text, unused: sourcedAssignment(meaning, pathOf)?.unused ?? unused }];
}

/** The clusters that our backends of a rule have where each has one of its own; none for that of one backend. */
export function backendClustersOf(meaning: Meaning | undefined): readonly BackendCluster[] {
  if (!meaning || meaning.rule.cluster.backend !== undefined) return [];
  const { text } = meaning.rule.cluster;
  return sharingBackends(meaning.rule).map(({ index, ref: { weight } }) => ({
    cluster: `${text}/backend/${index}`,
    weight,
  }));
}
