import type { ConditionUpdate } from '../../api/conditions.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import type { Kinds, RouteStatus } from '../../api/generated/types.ts';
import { keyOf } from '../../api/key.ts';
import { present } from '../../api/objects/place.ts';
import { inOrderOfKeys, refTo } from '../../api/objects/references.ts';
import { conditionOf, distinct, formatWithReason, titleOfSubject } from '../../api/problem.ts';
import type { ProblemAt } from '../../api/problem.ts';
import { cutText } from '../../api/text.ts';
import type { TrackedRead } from '../../store/tracking.ts';
import type { TrafficValues } from '../../store/traffic/values.ts';
import type { DataPathMode } from '../../traffic/data-path.ts';
import { isUsedByStatus, unusedOfRoute } from '../../traffic/endpoints/route-traffic.ts';
import type { TlsBudgets } from '../../traffic/settings/tls-budget.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';
import type { UnusedBackend } from '../../traffic/unused.ts';

type Problem = ProblemAt<'MeshEndpoints RoutesResolved'>;

/** A route that names a MeshEndpoints, and what of the object it does not use. */
type ResolvedRoute = { readonly route: Route; readonly unused: readonly UnusedBackend[] };

/** The routes that send or mirror traffic to a MeshEndpoints, sorted by kind, namespace and name. */
export function resolveRoutes(
  object: Kinds['MeshEndpoints'],
  routes: readonly Route[],
  unusedOf: (route: Route) => readonly UnusedBackend[],
): readonly ResolvedRoute[] {
  const key = keyOf(refTo(object));
  return inOrderOfKeys(routes).map(route => ({
    route,
    unused: unusedOf(route).filter(each => each.object === key),
  }));
}

const [MAX_ROUTES, MAX_MESSAGE_LENGTH] = [256, 1024];

/** status.routes; undefined where no route names the object. `messageOfResolved` is for routes that resolve. */
export function routeStatusesOf(
  routes: readonly ResolvedRoute[],
  messageOfResolved: (route: Route) => string | undefined,
): readonly RouteStatus[] | undefined {
  if (routes.length === 0) return undefined;
  return routes.slice(0, MAX_ROUTES).map(({ route, unused }) => {
    const { kind, metadata } = route;
    const named = { kind, namespace: metadata.namespace ?? '', name: metadata.name };
    if (unused.length === 0)
      return { ...named, resolved: true, ...present({ message: messageOfResolved(route) }) };
    return { ...named, resolved: false, message: messageOf(unused) };
  });
}

/** As many reasons as a message may have; a rule that several Gateways have is reported once. */
function messageOf(unused: readonly UnusedBackend[]): string {
  return cutText(distinct(unused).map(formatWithReason).join('; '), MAX_MESSAGE_LENGTH, '...');
}

/** Whether every route that names the object uses all that it names of it. */
export function routesResolvedOf(routes: readonly ResolvedRoute[]): ConditionUpdate {
  const message = 'every route that names this object resolves to its endpoints';
  const problem = routes.length === 0 ? NO_ROUTES : unresolvedIn(routes);
  return conditionOf('MeshEndpoints RoutesResolved', [problem], { reason: 'Resolved', message });
}

const NO_ROUTES: Problem = {
  reason: 'NoRoutes',
  text: 'no route that may refer to this object has it among its backendRefs; one of another namespace needs a ReferenceGrant',
};

function unresolvedIn(routes: readonly ResolvedRoute[]): Problem | undefined {
  const [first, ...others] = routes.filter(({ unused }) => unused.length > 0);
  const [reported] = first?.unused ?? [];
  if (!first || !reported) return undefined;
  const more = ` (and ${others.length} more of ${routes.length} routes: see status.routes)`;
  const text = `${titleOfSubject(refTo(first.route))}: ${messageOf([reported])}${others.length > 0 ? more : ''}`;
  return { reason: reported.reason, text };
}

/** What a route does not use, if the status of an object were this one, which is perhaps not written yet. */
export type UnusedOf = (
  route: Route,
  object: Kinds['MeshEndpoints'],
  status: NonNullable<Kinds['MeshEndpoints']['status']>,
) => readonly UnusedBackend[];

/** Reads what routes do not use, which is derived once for all MeshEndpoints of a route: it may name 256 with 1000 endpoints each. */
export function unusedReader(
  read: TrackedRead,
  {
    traffic,
    unused,
    overTlsBudget,
  }: Pick<TrafficValues, 'unused' | 'overTlsBudget'> & { readonly traffic: TrafficResources },
  dataPath: DataPathMode,
): UnusedOf {
  return (route, object, status) => {
    const isStored = traffic.meshEndpoints(refTo(object)) === object;
    if (isStored && !isUsedByStatus(object)) return read.value(unused, keyOf(refTo(route)));
    const key = keyOf(refTo(object));
    const meshEndpoints: TrafficResources['meshEndpoints'] = ref =>
      keyOf(ref) === key ? { ...object, status } : traffic.meshEndpoints(ref);
    const budgets: TlsBudgets = namespace => read.value(overTlsBudget, namespace);
    return unusedOfRoute({ ...traffic, meshEndpoints }, route, dataPath, budgets);
  };
}
