import { fromBinary } from '@bufbuild/protobuf';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { UInt32ValueSchema } from '@bufbuild/protobuf/wkt';
import { ruleOfBackendCluster } from '../../traffic/envoy-cluster-name.ts';
import { areUndivided, clustersBeside } from '../../traffic/rule-shares.ts';
import type { MeshShare, RuleShares } from '../../traffic/rule-shares.ts';
import type { HeaderChanges } from '../../api/objects/header-filters.ts';
import { encode } from '../encode.ts';
import {
  HeaderValueOption_HeaderAppendAction as AppendAction,
  HeaderValueOptionSchema,
} from '../proto/envoy/config/core/v3_pb.ts';
import {
  RouteActionSchema,
  WeightedCluster_ClusterWeightSchema as ClusterWeightSchema,
  WeightedClusterSchema,
} from '../proto/envoy/config/route/v3_pb.ts';
import {
  applyEdits,
  bytesField,
  concat,
  isMessage,
  mapField,
  messageOf,
  setField,
  textOf,
  valuesOf,
} from '../wire.ts';

const { number: CLUSTER } = RouteActionSchema.field.cluster;
const { number: WEIGHTED } = RouteActionSchema.field.weightedClusters;
const CLUSTERS = WeightedClusterSchema.field.clusters.number;
const { name: CLUSTER_NAME, weight: WEIGHT } = ClusterWeightSchema.field;

/** The cluster of Envoy Gateway that does not exist, so that its share of the requests fails. */
const UNAVAILABLE = 'invalid-backend-cluster';

/** Of the rule with a cluster of this name; undefined if its routes must stay as they are. */
export type SharesOf = (rule: string) => RuleShares | undefined;

/** How the rules of one translation are divided; all routes are read before any cluster. */
export type RuleDivision = {
  /** Divides the action of a route of the rule; returns the action itself if nothing in it changes. */
  readonly divide: (action: Uint8Array, rule: string, shares: RuleShares) => Uint8Array;
  /** The names of the clusters that are made of one of Envoy Gateway; none if it stays as it is. */
  readonly clusterNamesFor: (cluster: string) => readonly string[];
};

/**
 * Adds the shares of MeshEndpoints to the routes of rules that Envoy Gateway has divided: it lists only clusters whose endpoints
 * it knows. All other bytes are kept.
 *
 *   the routes of the rule                      the MeshEndpoints have        clusters
 *   to one cluster                              no filters                    that one
 *   to one cluster                              filters                       one for each
 *   to one, which Envoy Gateway alone can serve any                           one for each, and that one for all others
 *   to several                                  filters or none               one for each, made by Envoy Gateway
 *   to several, and to backends that are away   no filters                    the one that all backends had together before
 *   to none, because there is no other backend  filters or none                   the one that it had before
 *
 * With the last but one, a backend that is deleted or comes back changes no cluster of MeshEndpoints, so that no request to them fails.
 */
export function divideRules(sharesOf: SharesOf): RuleDivision {
  const together = new Set<string>();
  return {
    divide: (action, rule, shares) => {
      if (textOf(action, CLUSTER) === rule) return divided(action, rule, shares);
      return mapField(action, WEIGHTED, weighted => {
        if (!isMessage(weighted)) return weighted;
        const isTogether = areTogether(weighted, shares);
        if (isTogether) together.add(rule);
        return complete(weighted, rule, isTogether ? merged(rule, shares) : shares);
      });
    },
    clusterNamesFor: cluster => {
      const rule = ruleOfBackendCluster(cluster);
      if (rule === undefined) return [cluster, ...clustersBeside(cluster, sharesOf(cluster))];
      const { mesh = [] } = sharesOf(rule) ?? {};
      if (together.has(rule)) return mesh[0]?.cluster === cluster ? [rule] : [];
      // Envoy Gateway serves the endpoints of others in clusters that it has made.
      return mesh.some(each => each.cluster === cluster) ? [cluster] : [];
    },
  };
}

/** Whether Envoy Gateway has divided the rule, and MeshEndpoints need no clusters of their own: a backend is away, or there is one. */
function areTogether(weighted: Uint8Array, shares: RuleShares): boolean {
  const { mesh, isApart } = shares;
  if (areUndivided(shares)) return true;
  if (isApart || mesh.length === 0 || mesh.some(({ filters }) => filters)) return false;
  return valuesOf(weighted, CLUSTERS, Infinity).some(each => nameOf(each) === UNAVAILABLE);
}

function merged(rule: string, shares: RuleShares): RuleShares {
  if (areUndivided(shares)) return { ...shares, mesh: shares.mesh.map(each => ({ ...each, cluster: rule })) };
  const weight = shares.mesh.reduce((sum, each) => sum + each.weight, 0);
  return { ...shares, mesh: [{ cluster: rule, weight }] };
}

/** The one cluster of a rule becomes one for each of its backends. */
function divided(action: Uint8Array, rule: string, { mesh, others }: RuleShares): Uint8Array {
  if (!others) return action;
  const all: readonly MeshShare[] = [...mesh, ...others];
  const shares = all.length > 1 ? all : all.map(share => ({ ...share, cluster: rule }));
  const weighted = concat(shares.map(share => bytesField(CLUSTERS, encodeShare(share))));
  return applyEdits(action, [
    { number: CLUSTER, replaces: () => true, fields: [bytesField(WEIGHTED, weighted)] },
  ]);
}

/** Which backends Envoy Gateway has found may differ from what is known here: what is in no other share fails. */
function complete(weighted: Uint8Array, rule: string, { total, mesh }: RuleShares): Uint8Array {
  const given = valuesOf(weighted, CLUSTERS, Infinity);
  const listed = given.filter(each => nameOf(each) !== UNAVAILABLE);
  const names = new Set(listed.map(nameOf));
  const added = mesh.filter(({ cluster }) => !names.has(cluster));
  if (added.length === 0 || names.has(rule)) return weighted;
  const available = [...listed.map(weightOf), ...added.map(({ weight }) => weight)];
  const failing = Math.max(0, total - available.reduce((sum, weight) => sum + weight, 0));
  const unavailable = given.find(each => nameOf(each) === UNAVAILABLE) ?? encodeShare(NONE);
  const clusters = [
    ...(failing > 0
      ? [setField(unavailable, WEIGHT.number, encode(UInt32ValueSchema, { value: failing }))]
      : []),
    ...listed,
    ...added.map(encodeShare),
  ];
  const fields = clusters.map(each => bytesField(CLUSTERS, each));
  return applyEdits(weighted, [{ number: CLUSTERS, replaces: () => true, fields }]);
}

function nameOf(cluster: Uint8Array): string | undefined {
  return textOf(cluster, CLUSTER_NAME.number);
}

function weightOf(cluster: Uint8Array): number {
  return fromBinary(UInt32ValueSchema, messageOf(cluster, WEIGHT.number) ?? new Uint8Array()).value;
}

const NONE: MeshShare = { cluster: UNAVAILABLE, weight: 0 };

function encodeShare({ cluster, weight, filters: { request, response } = {} }: MeshShare): Uint8Array {
  return encode(ClusterWeightSchema, {
    name: cluster,
    weight,
    requestHeadersToAdd: request ? changedHeaders(request) : [],
    requestHeadersToRemove: [...(request?.remove ?? [])],
    responseHeadersToAdd: response ? changedHeaders(response) : [],
    responseHeadersToRemove: [...(response?.remove ?? [])],
  });
}

function changedHeaders({ add, set }: HeaderChanges): MessageInitShape<typeof HeaderValueOptionSchema>[] {
  return [
    ...add.map(header => changedHeader(header, AppendAction.APPEND_IF_EXISTS_OR_ADD)),
    ...set.map(header => changedHeader(header, AppendAction.OVERWRITE_IF_EXISTS_OR_ADD)),
  ];
}

/** A percent sign begins a variable of Envoy, and one that it does not know would make it refuse all routes. */
function changedHeader({ name, value }: HeaderChanges['add'][number], appendAction: AppendAction) {
  return { header: { key: name, value: value.replaceAll('%', '%%') }, appendAction };
}
