import type { Finding } from '../../api/conditions.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import type { Kinds, MeshEndpoint, RouteStatus } from '../../api/generated/types.ts';
import { keyOf } from '../../api/key.ts';
import { isMeshBackend, refTo } from '../../api/objects/references.ts';
import type { DataPathMode } from '../../traffic/data-path.ts';
import { trafficOfRoute } from '../../traffic/endpoints/route-traffic.ts';
import { tlsBudgetsOf } from '../../traffic/settings/tls-budget.ts';
import type { TlsBudgets } from '../../traffic/settings/tls-budget.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';
import { formatUnused } from '../../traffic/unused.ts';
import type { UnusedBackend } from '../../traffic/unused.ts';

/** Everything that a route does not use, of all MeshEndpoints that it names; a reason may be repeated. */
export function unusedOfRoute(
  route: Route,
  resources: TrafficResources,
  defaultPath: DataPathMode,
  budgets?: TlsBudgets,
): readonly UnusedBackend[] {
  const rules = trafficOfRoute(resources, route, defaultPath, budgets).flatMap(each => each.rules);
  return rules.flatMap(({ unused }) => unused);
}

/** A route that names a MeshEndpoints, and what of the object it does not use. */
type ResolvedRoute = { readonly route: Route; readonly unused: readonly UnusedBackend[] };

/** The routes that have a MeshEndpoints among their backends, sorted by kind, namespace and name. */
export function resolveRoutes(
  object: Kinds['MeshEndpoints'],
  routes: readonly Route[],
  unusedOf: (route: Route) => readonly UnusedBackend[],
): readonly ResolvedRoute[] {
  const key = keyOf(refTo(object));
  return routes
    .filter(route => isBackendOf(route, object))
    .map(route => ({ route, unused: unusedOf(route).filter(each => each.object === key) }))
    .map(resolved => ({ ...resolved, key: keyOf(refTo(resolved.route)) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** A route may name an object as the target of a mirror only. */
function isBackendOf({ rules }: Route, { metadata }: Kinds['MeshEndpoints']): boolean {
  return rules.some(({ backendRefs }) =>
    backendRefs.some(
      ref => isMeshBackend(ref) && ref.namespace === (metadata.namespace ?? '') && ref.name === metadata.name,
    ),
  );
}

const [MAX_ROUTES, MAX_MESSAGE_LENGTH] = [256, 1024];

/** status.routes; undefined where no route names the object. */
export function routeStatusesOf(routes: readonly ResolvedRoute[]): readonly RouteStatus[] | undefined {
  if (routes.length === 0) return undefined;
  return routes.slice(0, MAX_ROUTES).map(({ route, unused }) => {
    const { kind, metadata } = route;
    const named = { kind, namespace: metadata.namespace ?? '', name: metadata.name };
    if (unused.length === 0) return { ...named, resolved: true };
    return { ...named, resolved: false, message: messageOf(unused) };
  });
}

/** As many reasons as a message may have; a rule that several Gateways have is reported once. */
function messageOf(unused: readonly UnusedBackend[]): string {
  const message = [...new Set(unused.map(formatUnused))].join('; ');
  const cut = cutText(message, MAX_MESSAGE_LENGTH);
  return cut === message ? message : `${cutText(message, MAX_MESSAGE_LENGTH - MORE.length)}${MORE}`;
}

const MORE = '...';

/** At most as many characters of a text, as an API server counts them: half of one would be stored as another. */
export function cutText(text: string, maxLength: number): string {
  const characters = Array.from(text);
  return characters.length <= maxLength ? text : characters.slice(0, maxLength).join('');
}

/** Whether every route that names the object uses all that it names of it. */
export function routesResolvedOf(routes: readonly ResolvedRoute[]): Finding {
  const type = 'RoutesResolved';
  if (routes.length === 0) {
    const message = 'no route has this object among its backendRefs';
    return { type, status: 'Unknown', reason: 'NoRoutes', message };
  }
  const unresolved = routes.filter(({ unused }) => unused.length > 0);
  const [first] = unresolved;
  const [reported] = first?.unused ?? [];
  if (!first || !reported) {
    const message = 'every route that names this object resolves to its endpoints';
    return { type, status: 'True', reason: 'Resolved', message };
  }
  const { kind, metadata } = first.route;
  const others = unresolved.length - 1;
  const more = others === 0 ? '' : ` (and ${others} more of ${routes.length} routes: see status.routes)`;
  const message = `${kind} ${metadata.namespace ?? ''}/${metadata.name}: ${messageOf([reported])}${more}`;
  return { type, status: 'False', reason: reported.reason, message };
}

type ResolutionDeps = {
  readonly traffic: TrafficResources;
  /** The data path of Gateways that have no other. */
  readonly dataPath: DataPathMode;
};

/** What routes do not use, computed once for all MeshEndpoints of a route: a route may name 256 with 1000 endpoints each. */
export class Resolutions {
  readonly #deps: ResolutionDeps;
  /** A changed route is another object, and clusters over a budget are another set. */
  #known = new WeakMap<Route, { readonly over: object; readonly unused: readonly UnusedBackend[] }>();
  #budgets: TlsBudgets;

  constructor(deps: ResolutionDeps) {
    this.#deps = deps;
    this.#budgets = tlsBudgetsOf(deps.traffic);
  }

  /** Whether an endpoint of UDP or with externalTarget is used depends on its status, which is perhaps not written yet. */
  unusedOf(
    route: Route,
    object: Kinds['MeshEndpoints'],
    status: NonNullable<Kinds['MeshEndpoints']['status']>,
  ): readonly UnusedBackend[] {
    const { traffic, dataPath } = this.#deps;
    const budgets = this.#budgets;
    if (object.spec.endpoints?.some(dependsOnStatus)) {
      const key = keyOf(refTo(object));
      const meshEndpoints: TrafficResources['meshEndpoints'] = ref =>
        keyOf(ref) === key ? { ...object, status } : traffic.meshEndpoints(ref);
      return unusedOfRoute(route, { ...traffic, meshEndpoints }, dataPath, budgets);
    }
    const over = budgets(route.metadata.namespace ?? '');
    const known = this.#known.get(route);
    if (known?.over === over) return known.unused;
    const unused = unusedOfRoute(route, traffic, dataPath, budgets);
    this.#known.set(route, { over, unused });
    return unused;
  }

  /** Must be called when a route has changed, on which the budget of its namespace depends. */
  forgetBudgets(): void {
    this.#budgets = tlsBudgetsOf(this.#deps.traffic);
  }

  /** Must be called when anything but a route has changed that routes depend on. */
  forgetAll(): void {
    this.#known = new WeakMap();
    this.forgetBudgets();
  }
}

function dependsOnStatus({ protocol, externalTarget }: MeshEndpoint): boolean {
  return protocol === 'UDP' || externalTarget !== undefined;
}
