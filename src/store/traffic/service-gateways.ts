import { keyOf, refOf } from '../../api/key.ts';
import type { Key, Ref, ResourceKind } from '../../api/key.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import { refTo } from '../../api/objects/references.ts';
import { gatewaysOf } from '../../traffic/attachments.ts';
import { meshEndpointsRefOf } from '../../traffic/backend-refs.ts';
import { isPermitted } from '../../traffic/permissions.ts';
import { meshRulesOf } from '../../traffic/resolve-route.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';
import { Derived } from '../derived.ts';
import { routesTo } from '../indexes.ts';
import { byNamespace } from '../resources.ts';
import type { TrackedRead, Tracking } from '../tracking.ts';
import { meshGatewaysByGateway } from './resources.ts';

/*
 * Which MeshGateway decides about the VIP services of a MeshEndpoints:
 *
 *   routes of its namespace that use it attach to
 *   Gateways with a MeshGateway                     the oldest of those that decide about these Gateways
 *   else                                            the oldest of its namespace
 *   none                                            defaults apply
 *
 * A ReferenceGrant lets routes of another namespace send traffic, and decide nothing else.
 */

/** By the key of a MeshEndpoints: the key of the MeshGateway that decides about its VIP services. */
export function serviceGatewaysFrom(
  tracking: Tracking,
  reads: readonly ResourceKind[],
  settingsResources: (read: TrackedRead) => TrafficResources,
): Derived<Key | undefined> {
  return new Derived<Key | undefined>(tracking, [...reads, 'MeshGateway'], (key, run) => {
    const { exceptStatus: read } = run;
    const { namespace } = refOf(key as Key) as Ref<'MeshEndpoints'>;
    const resources = settingsResources(run);
    const routes = routesTo(key as Key, read).filter(
      route =>
        route.metadata.namespace === namespace && usedBy(route, resources).some(used => keyOf(used) === key),
    );
    const gateways = new Set(routes.flatMap(route => gatewaysOf(route, resources)));
    const deciding = [...gateways].flatMap(
      gateway => oldestOf(read.find(meshGatewaysByGateway, gateway)) ?? [],
    );
    const oldest = oldestOf(deciding) ?? oldestOf(read.find(byNamespace('MeshGateway'), namespace));
    return oldest && keyOf(refTo(oldest));
  });
}

/** The MeshEndpoints that a route names as backends and may use. */
export function usedBy(route: Route, resources: TrafficResources): readonly Ref<'MeshEndpoints'>[] {
  const from = { kind: route.kind, namespace: route.metadata.namespace ?? '' };
  return meshRulesOf(route)
    .flatMap(({ meshRefs }) => meshRefs)
    .filter(({ ref }) => isPermitted(resources, from, ref))
    .map(meshEndpointsRefOf);
}
