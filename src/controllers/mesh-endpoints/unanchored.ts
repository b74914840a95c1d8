import type { Kinds } from '../../api/generated/types.ts';
import { keyOf } from '../../api/key.ts';
import type { Key, Ref, RouteKind } from '../../api/key.ts';
import { isBackendNotFound } from '../../api/objects/gateway-api.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import { refTo } from '../../api/objects/references.ts';
import { anchorsByEndpoints } from '../../store/indexes.ts';
import type { TrackedRead } from '../../store/tracking.ts';

/*
 * Envoy Gateway reports on each anchor that it sees, within a second or so. Where its namespace selectors hide the operator's
 * namespace, an anchor has no status, and the L4 routes of its MeshEndpoints keep what they have without an anchor:
 *
 *   the anchor has a status           ResolvedRefs of the routes is right
 *   it has none, and is new           Envoy Gateway has perhaps not seen it yet: wait
 *   it has none after REPORT_MS       a route that Envoy Gateway does not resolve without an anchor gets a message
 */

/** L4 routes that Envoy Gateway does not resolve, and the anchor on which it has not reported. */
export type Unanchored = {
  readonly routes: ReadonlySet<Key>;
  readonly anchor: Route['metadata'];
};

/** How long Envoy Gateway may take until it reports on an anchor. */
export const REPORT_MS = 30_000;

type Sources = {
  readonly object: Kinds['MeshEndpoints'];
  /** Those that name the object. */
  readonly routes: readonly Route[];
  readonly read: TrackedRead;
  readonly anchorNamespace: string | undefined;
};

/** Reads the status of anchors, and that of L4 routes only where an anchor has none: Envoy Gateway writes it often. */
export function unanchoredOf({ object, routes, read, anchorNamespace }: Sources): Unanchored | undefined {
  const unreported = read
    .find(anchorsByEndpoints, keyOf(refTo(object)))
    // Everybody can write an HTTPRoute with the label of anchors.
    .filter(({ metadata, status }) => metadata.namespace === anchorNamespace && status === undefined);
  const anchor = oldestOf(unreported)?.metadata;
  if (!anchor) return undefined;
  const unresolved = routes
    .map(refTo)
    .filter(ref => needsAnchor(ref) && isBackendNotFound(read.get(ref) ?? {}));
  return unresolved.length > 0 ? { routes: new Set(unresolved.map(keyOf)), anchor } : undefined;
}

function needsAnchor({ kind }: Ref<RouteKind>): boolean {
  return kind !== 'HTTPRoute' && kind !== 'GRPCRoute';
}

/** The milliseconds until the anchor counts as hidden from Envoy Gateway; 0 or less where it does, or nothing depends on it. */
export function unanchoredInMs(unanchored: Unanchored | undefined, now: Date): number {
  const createdMs = Date.parse(unanchored?.anchor.creationTimestamp ?? '');
  return Number.isNaN(createdMs) ? 0 : createdMs + REPORT_MS - now.getTime();
}

/** Why Envoy Gateway does not resolve a route, if that is because an anchor is hidden from it. */
export function unanchoredMessage(
  route: Route,
  unanchored: Unanchored | undefined,
  now: Date,
): string | undefined {
  if (!unanchored?.routes.has(keyOf(refTo(route))) || unanchoredInMs(unanchored, now) > 0) return undefined;
  const { namespace = '', name } = unanchored.anchor;
  return `traffic flows, but Envoy Gateway reports ResolvedRefs False/BackendNotFound, because it has not seen HTTPRoute ${namespace}/${name}: let namespaceSelector or namespaces of its provider.kubernetes.watch include namespace ${namespace}, or set routeStatus.anchors to false in a MeshGateway to have no such HTTPRoutes`;
}
