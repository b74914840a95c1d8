import { isOverHttp, keyOf, refOf } from '../../api/key.ts';
import type { Key, Ref, RouteKind } from '../../api/key.ts';
import { anchoredBy, gatewaysIn, isAnchor, refTo } from '../../api/objects/references.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import { byNamespace } from '../../store/resources.ts';
import type { TrackedRead } from '../../store/tracking.ts';
import { meshGatewaysByGateway } from '../../store/traffic/resources.ts';
import type { TrafficValues } from '../../store/traffic/values.ts';
import { meshEndpointsRefOf } from '../../traffic/backend-refs.ts';
import { isAllowed, isPermitted } from '../../traffic/permissions.ts';
import { meshRulesOf } from '../../traffic/resolve-route.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';
import type { Anchor, Input } from './plan.ts';

export type GatherDeps = {
  /** Of a store with the `trafficIndexes`. */
  readonly values: Pick<TrafficValues, 'attachedRoutes' | 'reads' | 'settingsResources'>;
};

/** Reads the anchors in a namespace and what needs some; returns the function that does. */
export function gatherer({ values }: GatherDeps): (namespace: string, read: TrackedRead) => Input {
  const needed = values.attachedRoutes.combined<readonly Key[], readonly Key[]>({
    reads: [...values.reads, 'MeshGateway'],
    ofGroup: (keys, read) => {
      const routes = keys.flatMap(key => read.exceptStatus.get(refOf(key) as Ref<RouteKind>) ?? []);
      return neededBy(routes, values.settingsResources(read));
    },
    ofGateway: (parts, key, read) => {
      const decides = oldestOf(read.exceptStatus.find(meshGatewaysByGateway, key));
      return decides?.spec.routeStatus?.anchors === false ? [] : [...new Set(parts.flat())].sort();
    },
  });
  return (namespace, read) => ({
    anchors: read.exceptStatus.find(byNamespace('HTTPRoute'), namespace).filter(isAnchor).map(anchorOf),
    gateways: read.exceptStatus.list('Gateway').map(object => {
      const gateway = keyOf(refTo(object));
      return { gateway, className: object.gatewayClassName, meshEndpoints: read.value(needed, gateway) };
    }),
  });
}

function anchorOf(route: Route): Anchor {
  const [gateway] = gatewaysIn(route.parentRefs);
  return {
    name: route.metadata.name,
    gateway: gateway ?? keyOf({ kind: 'Gateway', namespace: '', name: '' }),
    meshEndpoints: [...new Set(anchoredBy(route))],
  };
}

/** The MeshEndpoints to which TLSRoutes, TCPRoutes and UDPRoutes may refer, and that may use their tailnet. */
function neededBy(routes: readonly Route[], resources: TrafficResources): readonly Key[] {
  const refs = routes
    .filter(({ kind }) => !isOverHttp(kind))
    .flatMap(meshRulesOf)
    .flatMap(({ meshRefs }) => meshRefs)
    .filter(({ route, ref }) => {
      const { kind, metadata } = route;
      return isPermitted(resources, { kind, namespace: metadata.namespace ?? '' }, ref);
    })
    .map(meshEndpointsRefOf)
    .filter(ref => isUsable(ref, resources));
  return [...new Set(refs.map(keyOf))];
}

function isUsable(ref: Ref<'MeshEndpoints'>, resources: TrafficResources): boolean {
  const object = resources.meshEndpoints(ref);
  const tailnet = object && oldestOf(resources.tailnets(object.spec.tailnet));
  if (!tailnet) return object !== undefined;
  return isAllowed(resources, tailnet.spec.allowedNamespaces, ref.namespace);
}
