import { isEqual } from '../../api/json.ts';
import type { Kinds, VipServiceStatus } from '../../api/generated/types.ts';
import { endpointsOf, vipServicesIn } from '../../api/objects/endpoints.ts';
import { keyOf, refOf } from '../../api/key.ts';
import type { Key, Ref, RouteKind } from '../../api/key.ts';
import { findCondition } from '../../api/conditions.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import { refTo } from '../../api/objects/references.ts';
import { Derived } from '../../store/derived.ts';
import { vipServicesByNamespace } from '../../store/indexes.ts';
import type { ReadObjects } from '../../store/resources.ts';
import type { TrackedRead, Tracking } from '../../store/tracking.ts';
import { bindingOf, meshGatewaysByGateway } from '../../store/traffic/resources.ts';
import { usedBy } from '../../store/traffic/service-gateways.ts';
import type { TrafficValues } from '../../store/traffic/values.ts';
import { countCrowded } from '../../traffic/endpoints/operator-checks.ts';
import { targetsOf } from '../../traffic/gateway-settings.ts';
import type { GatewaySettings } from '../../traffic/gateway-settings.ts';
import { meshRulesOf } from '../../traffic/resolve-route.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';

type MeshGateway = Kinds['MeshGateway'];

export type GatherDeps = {
  readonly tracking: Tracking;
  readonly values: Pick<
    TrafficValues,
    'attachedRoutes' | 'crowded' | 'reads' | 'serviceGateways' | 'settings' | 'settingsResources'
  >;
};

/** A Gateway that a MeshGateway targets. */
export type Target = { readonly gateway: Ref<'Gateway'> } & (
  | { readonly is: 'missing' }
  | { readonly is: 'of-other'; readonly decidedBy: string }
  | {
      readonly is: 'decided';
      readonly routes: RoutesOfGateway;
      readonly settings: GatewaySettings | undefined;
      readonly crowded: CrowdedCounts;
      readonly binding: Kinds['MeshBinding'] | undefined;
    }
);

type CrowdedCounts = ReturnType<typeof countCrowded>;

/** The routes that attach to a Gateway, and the MeshEndpoints that they name and may use, by keys. */
type RoutesOfGateway = {
  readonly all: readonly Key[];
  readonly mesh: readonly Key[];
  readonly endpoints: readonly Key[];
};

/** What the status of a MeshGateway depends on. */
export type Input = {
  readonly object: MeshGateway;
  /** Each once, in the order of targetRefs. */
  readonly targets: readonly Target[];
  /** The existing MeshEndpoints of the Gateways that it decides about. */
  readonly endpoints: readonly EndpointCounts[];
  /** The MeshEndpoints with VIP services that it decides about. */
  readonly services: readonly ListedServices[];
};

/** How many endpoints a MeshEndpoints has. */
type EndpointCounts = {
  readonly object: Ref<'MeshEndpoints'>;
  readonly total: number;
  readonly healthy: number;
};

/** The VIP services of a MeshEndpoints, by its status. */
type ListedServices = {
  readonly object: Ref<'MeshEndpoints'>;
  readonly entries: readonly VipServiceStatus[];
  /** Its condition VIPServicesReady. */
  readonly ready: { readonly status: string; readonly reason: string } | undefined;
};

/** Reads what the status of a MeshGateway depends on. */
export function gatherer({
  tracking,
  values,
}: GatherDeps): (object: MeshGateway, read: TrackedRead) => Input {
  const routes = values.attachedRoutes.combined<RoutesOfGateway, RoutesOfGateway>({
    reads: values.reads,
    ofGroup: (keys, read) => routesIn(keys, read.exceptStatus, values.settingsResources(read)),
    ofGateway: parts => ({
      all: parts.flatMap(({ all }) => all),
      mesh: parts.flatMap(({ mesh }) => mesh),
      endpoints: [...new Set(parts.flatMap(({ endpoints }) => endpoints))].sort(),
    }),
  });
  // Most changes of a MeshEndpoints leave its counts as they are.
  const counts = new Derived<EndpointCounts | undefined>(
    tracking,
    ['MeshEndpoints'],
    (key, read) => countsOf(refOf(key as Key) as Ref<'MeshEndpoints'>, read),
    isEqual,
  );
  const listed = new Derived<ListedServices | undefined>(
    tracking,
    ['MeshEndpoints'],
    (key, read) => listedServicesOf(refOf(key as Key) as Ref<'MeshEndpoints'>, read),
    isEqual,
  );
  // Most changes of routes leave them as they are, too.
  const crowded = new Derived<CrowdedCounts>(
    tracking,
    [],
    (key, read) => {
      const { checkedByOperator = [] } = read.value(values.settings, key) ?? {};
      return countCrowded(read.value(values.crowded, key), checkedByOperator);
    },
    isEqual,
  );
  const targetOf = (object: MeshGateway, key: Key, read: TrackedRead): Target => {
    const gateway = refOf(key) as Ref<'Gateway'>;
    const { exceptStatus } = read;
    const decidedBy = oldestOf(exceptStatus.find(meshGatewaysByGateway, key))?.metadata.name;
    if (decidedBy !== undefined && decidedBy !== object.metadata.name)
      return { gateway, is: 'of-other', decidedBy };
    if (!exceptStatus.get(gateway)) return { gateway, is: 'missing' };
    const settings = read.value(values.settings, key);
    return {
      gateway,
      is: 'decided',
      routes: read.value(routes, key),
      settings,
      crowded: read.value(crowded, key),
      binding: bindingOf(gateway, read),
    };
  };
  return (object, read) => {
    const targets = [...new Set(targetsOf(object))].map(key => targetOf(object, key, read));
    const named = new Set(targets.flatMap(each => (each.is === 'decided' ? each.routes.endpoints : [])));
    const endpoints = [...named].flatMap(key => read.value(counts, key) ?? []);
    const inNamespace = read.exceptStatus.find(vipServicesByNamespace, object.metadata.namespace ?? '');
    const services = [...new Set([...named, ...inNamespace.map(each => keyOf(refTo(each)))])].flatMap(key => {
      const services = read.value(listed, key);
      return services && read.value(values.serviceGateways, key) === keyOf(refTo(object)) ? [services] : [];
    });
    return { object, targets, endpoints, services };
  };
}

function countsOf(ref: Ref<'MeshEndpoints'>, read: TrackedRead): EndpointCounts | undefined {
  const object = read.get(ref);
  if (!object) return undefined;
  const { total = endpointsOf(object).length, healthy = 0 } = object.status?.summary ?? {};
  return { object: ref, total, healthy };
}

function listedServicesOf(ref: Ref<'MeshEndpoints'>, read: TrackedRead): ListedServices | undefined {
  const object = read.get(ref);
  if (!object) return undefined;
  const names = new Set(vipServicesIn(object).map(({ name }) => name));
  if (names.size === 0) return undefined;
  const { vipServices = [], conditions } = object.status ?? {};
  const ready = findCondition(conditions, 'VIPServicesReady');
  return {
    object: ref,
    entries: vipServices.filter(({ name }) => names.has(name)),
    ready: ready && { status: ready.status, reason: ready.reason },
  };
}

function routesIn(all: readonly Key[], read: ReadObjects, resources: TrafficResources): RoutesOfGateway {
  const routes = all.flatMap(key => read.get(refOf(key) as Ref<RouteKind>) ?? []);
  const mesh = routes.filter(route => meshRulesOf(route).length > 0);
  const used = mesh.flatMap(route => usedBy(route, resources));
  return {
    all,
    mesh: mesh.map(route => keyOf(refTo(route))),
    endpoints: [...new Set(used.map(keyOf))],
  };
}
