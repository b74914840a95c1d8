import type { Kinds } from '../../api/generated/types.ts';
import { isOverHttp, keyOf } from '../../api/key.ts';
import type { Key } from '../../api/key.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { oldestOf, timeMs } from '../../api/objects/oldest.ts';
import { refTo } from '../../api/objects/references.ts';
import { anchorsByEndpoints } from '../../store/indexes.ts';
import type { TrackedRead } from '../../store/tracking.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';
import { MAKE_SEEN, SEEN_MS, completeSinceMs } from '../../traffic/unseen.ts';

/*
 * Envoy Gateway reports on each anchor that it sees, within a second or so, and then resolves the L4 routes of its MeshEndpoints.
 * Where its namespace selectors hide the operator's namespace, an anchor has no status; where Envoy Gateway does not see
 * MeshEndpoints (see unseen.ts), it has one, and has no effect. Connections and datagrams pass all the same.
 *
 *   the routes are resolved                         nothing is wrong
 *   they are not, and the anchor has no status      the anchor is hidden
 *   they are not, and all that they name exists     MeshEndpoints are hidden
 *
 * Each counts once Envoy Gateway has had SEEN_MS to see what exists.
 */

/** L4 routes that Envoy Gateway does not resolve, as their anchors have no effect. */
export type Unanchored = {
  readonly routes: ReadonlySet<Key>;
  /** When the last of what Envoy Gateway has to see was created. */
  readonly sinceMs: number;
  /** The anchor on which it has not reported; undefined where it has on all. */
  readonly hidden: Route['metadata'] | undefined;
};

type Sources = {
  readonly object: Kinds['MeshEndpoints'];
  /** Those that name the object. */
  readonly routes: readonly Route[];
  readonly read: TrackedRead;
  readonly traffic: TrafficResources;
  readonly anchorNamespace: string | undefined;
};

/** Reads what keeps Envoy Gateway from resolving L4 routes, where it does not resolve some. */
export function unanchoredOf({
  object,
  routes,
  read,
  traffic,
  anchorNamespace,
}: Sources): Unanchored | undefined {
  const unresolved = routes.filter(({ kind, lacksBackend }) => lacksBackend && !isOverHttp(kind));
  if (unresolved.length === 0) return undefined;
  const anchors = read
    .find(anchorsByEndpoints, keyOf(refTo(object)))
    // Everybody can write an HTTPRoute with the label of anchors.
    .filter(({ metadata }) => metadata.namespace === anchorNamespace);
  const hidden = oldestOf(anchors.filter(({ isReported }) => !isReported))?.metadata;
  if (hidden) return { routes: keysOf(unresolved), sinceMs: timeMs(hidden.creationTimestamp), hidden };
  if (anchors.length === 0) return undefined;
  const complete = unresolved.flatMap(route => {
    const sinceMs = completeSinceMs(route, traffic);
    return sinceMs === undefined ? [] : [{ route, sinceMs }];
  });
  if (complete.length === 0) return undefined;
  const found = complete.map(({ route }) => route);
  const created = [...found, ...anchors].map(({ metadata }) => timeMs(metadata.creationTimestamp));
  const sinceMs = Math.max(...created, ...complete.map(each => each.sinceMs));
  return { routes: keysOf(found), sinceMs, hidden: undefined };
}

function keysOf(routes: readonly Route[]): ReadonlySet<Key> {
  return new Set(routes.map(route => keyOf(refTo(route))));
}

/** The milliseconds until Envoy Gateway should have seen what exists; 0 or less where it should have by now, or has. */
export function unanchoredInMs(unanchored: Unanchored | undefined, now: Date): number {
  return unanchored ? unanchored.sinceMs + SEEN_MS - now.getTime() : 0;
}

/** Why Envoy Gateway does not resolve a route, if that is because its anchors have no effect. */
export function unanchoredMessage(
  route: Route,
  unanchored: Unanchored | undefined,
  now: Date,
): string | undefined {
  if (!unanchored?.routes.has(keyOf(refTo(route))) || unanchoredInMs(unanchored, now) > 0) return undefined;
  const reports = 'traffic flows, but Envoy Gateway reports ResolvedRefs False/BackendNotFound';
  if (!unanchored.hidden) return `${reports} though its MeshEndpoints exist: ${MAKE_SEEN}`;
  const { namespace = '', name } = unanchored.hidden;
  return `${reports}, because it has not seen HTTPRoute ${namespace}/${name}: let namespaceSelector or namespaces of its provider.kubernetes.watch include namespace ${namespace}, or set routeStatus.anchors to false in a MeshGateway to have no such HTTPRoutes`;
}
