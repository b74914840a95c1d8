import { encode } from '../encode.ts';
import { edited, within } from '../edit.ts';
import {
  RouteActionSchema,
  RouteSchema,
  WeightedCluster_ClusterWeightSchema as WeightSchema,
  WeightedClusterSchema,
} from '../proto/envoy/config/route/v3_pb.ts';
import { bytesField, isMessage, textOf, valuesOf } from '../wire.ts';
import type { Attempts } from './attempts.ts';
import { answerWith } from './embedded.ts';

/** The cluster of one backend of a rule, and the weight of its reference. */
export type BackendCluster = { readonly cluster: string; readonly weight: number };

/** What routes are to be made of. */
export type RouteParts = {
  /** The clusters that our backends of a rule have where each backend has one of its own. */
  readonly backendsOf: (rule: string) => readonly BackendCluster[];
  readonly attempts: Attempts;
};

/**
 * Answers PostRouteModify. Where Envoy Gateway gives each backend of a rule a cluster of its own, such as when one of them
 * is not there, it sends no traffic to ours, since it knows no endpoints of them: then they are added by their weights.
 */
export function answerRoute(request: Uint8Array, { backendsOf, attempts }: RouteParts): Uint8Array {
  return answerWith(request, route => {
    const name = textOf(route, RouteSchema.field.name.number) ?? '';
    return attempts.change('route', name, route, () => {
      const rule = ruleOf(name);
      if (rule === undefined || !isMessage(route)) return route;
      const changed = withBackends(route, () => backendsOf(rule));
      if (changed !== route) attempts.served('route');
      return changed;
    });
  });
}

/** A route is named after its rule, with what it matches behind it. */
function ruleOf(route: string): string | undefined {
  return /^(httproute\/[^/]+\/[^/]+\/rule\/\d+)\/match\//.exec(route)?.[1];
}

function withBackends(route: Uint8Array, backendsOf: () => readonly BackendCluster[]): Uint8Array {
  const changed = within(route, RouteSchema.field.route.number, action =>
    within(action, RouteActionSchema.field.weightedClusters.number, weighted => {
      const { number } = WeightedClusterSchema.field.clusters;
      const known = valuesOf(weighted, number, MOST_CLUSTERS).map(cluster =>
        textOf(cluster, WeightSchema.field.name.number),
      );
      const missing = backendsOf().filter(({ cluster }) => !known.includes(cluster));
      if (missing.length === 0) return weighted;
      return edited(weighted, [{ number, replaces: () => false, fields: missing.map(fieldOf) }]);
    }),
  );
  return Buffer.compare(changed, route) === 0 ? route : changed;
}

/** A rule has 16 backends at most. */
const MOST_CLUSTERS = 64;

function fieldOf({ cluster, weight }: BackendCluster): Uint8Array {
  const value = encode(WeightSchema, { name: cluster, weight });
  return bytesField(WeightedClusterSchema.field.clusters.number, value);
}
