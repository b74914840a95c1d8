import { ENVOY_GATEWAY_GROUP } from '../../api/objects/backends.ts';
import type { Gateway, GatewayClass, Route } from '../../api/objects/gateway-api.ts';
import type { Ref } from '../../api/key.ts';
import { keyOf, refOf } from '../../api/key.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import type { BackendTrafficPolicy, EnvoyProxy } from '../../api/objects/traffic-policy.ts';
import { attachmentsOf, gatewaysOf, parentRefsTo } from '../attachments.ts';
import type { Attachment, AttachmentResources } from '../attachments.ts';
import type { RouteBackendRef } from '../backend-refs.ts';
import type { EnvoyClusterName } from '../envoy-cluster-name.ts';
import type { TrafficResources } from '../traffic-resources.ts';
import { isTarget, policyTargetOf, routeTargets } from './traffic-policies.ts';
import type { PolicyTarget } from './traffic-policies.ts';

/** What decides the routing type of a rule. */
export type RoutingResources = AttachmentResources &
  Pick<TrafficResources, 'grants' | 'trafficPolicies' | 'gatewayClass' | 'envoyProxy'>;

/** How Envoy Gateway routes to the Services of a rule. */
export type ServiceRouting = {
  /** Whether it uses the addresses of Services, and not those of their endpoints. */
  readonly isByService: boolean;
  /** The policy of the rule, or else of the route: no other one can apply to it. */
  readonly policy: BackendTrafficPolicy | undefined;
};

/*
 * Where Envoy Gateway 1.9 reads the routing type of a rule at a Gateway, the first that sets it:
 *
 *   the policy of the rule, else of the route          without a mergeType it decides also where it sets nothing
 *   the policy of the listener or of the ListenerSet   of a listener only where sectionName of the parentRef names it
 *   the policy of the Gateway
 *   the EnvoyProxy of the Gateway                      without a mergeType it replaces that of the GatewayClass
 *   the EnvoyProxy of the GatewayClass
 *
 * In Envoy Gateway's own configuration, which is not read, may be another default than `Endpoint`.
 */

/** How Envoy Gateway routes to the Services of a rule at a Gateway, by all parentRefs there. */
export function serviceRoutingOf(
  resources: RoutingResources,
  route: Route,
  rule: EnvoyClusterName['rule'],
  gateway: Ref<'Gateway'>,
): ServiceRouting {
  const { own: policy, ofParents } = policiesOf(resources, route, rule, gateway);
  const decides = policy !== undefined && (policy.routingType !== undefined || !policy.isMerged);
  const types = decides
    ? [policy.routingType]
    : ofParents.map(policies => policies.map(({ routingType }) => routingType).find(isSet));
  const byDefault = typeOfProxies(resources, gateway);
  return { isByService: types.every(type => (type ?? byDefault) === 'Service'), policy };
}

/** The policy that gives each backend of a rule a cluster of its own at a Gateway, because it prefers zones. */
export function zonePolicyOf(
  resources: RoutingResources,
  route: Route,
  rule: EnvoyClusterName['rule'],
  gateway: Ref<'Gateway'>,
): BackendTrafficPolicy | undefined {
  const { own, ofParents } = policiesOf(resources, route, rule, gateway);
  const closest = own && !own.isMerged ? [] : ofParents.flatMap(([first]) => first ?? []);
  return [...(own ? [own] : []), ...closest].find(({ prefersZones }) => prefersZones);
}

/** The policy of a rule, else of its route, and for each parentRef those of its parents, of which the closest is first. */
function policiesOf(
  resources: RoutingResources,
  route: Route,
  rule: EnvoyClusterName['rule'],
  gateway: Ref<'Gateway'>,
) {
  const policyAt = (target: PolicyTarget) =>
    oldestOf(resources.trafficPolicies(target).filter(policy => isTarget(policy, target, resources)));
  const [own] = routeTargets(route, rule).flatMap(target => policyAt(target) ?? []);
  const ofParents = attachmentsOf(route, resources)
    .filter(attachment => keyOf(attachment.gateway) === keyOf(gateway))
    .flatMap(attachment => parentsAt(route, attachment, resources))
    .map(targets => targets.flatMap(target => policyAt(target) ?? []));
  return { own, ofParents };
}

/** Whether Envoy Gateway reaches a backend by the own address of a Service, at every Gateway of the route. */
export function isReachedByAddress(
  resources: RoutingResources & Pick<TrafficResources, 'service'>,
  { route, ref }: Pick<RouteBackendRef, 'route' | 'ref'>,
  rule: EnvoyClusterName['rule'],
): boolean {
  const service = ref.kind === 'Service' ? resources.service({ ...ref, kind: ref.kind }) : undefined;
  if (!service || service.isHeadless === true) return false;
  const gateways = gatewaysOf(route, resources).map(key => refOf(key) as Ref<'Gateway'>);
  const isByService = (gateway: Ref<'Gateway'>) =>
    serviceRoutingOf(resources, route, rule, gateway).isByService;
  return gateways.length > 0 && gateways.every(isByService);
}

function isSet(type: string | undefined): boolean {
  return type !== undefined;
}

/** For each parentRef the listener that it names, and its parents; a ListenerSet is closer than its Gateway. */
function parentsAt(
  route: Route,
  { gateway, parent }: Attachment,
  resources: RoutingResources,
): readonly (readonly PolicyTarget[])[] {
  const closest = policyTargetOf(parent);
  const whole = parent.kind === 'ListenerSet' ? resources.gateway(gateway) : undefined;
  const parents = [closest, ...(whole ? [policyTargetOf(whole)] : [])];
  return parentRefsTo(route, parent).map(({ sectionName }) =>
    sectionName === undefined ? parents : [{ ...closest, sectionName }, ...parents],
  );
}

function typeOfProxies(resources: RoutingResources, ref: Ref<'Gateway'>): string | undefined {
  const gateway = resources.gateway(ref);
  const ofClass = envoyProxyOf(gateway && resources.gatewayClass(gateway.gatewayClassName), resources);
  const own = envoyProxyOf(gateway, resources);
  if (!own) return ofClass?.routingType;
  return own.routingType ?? (own.isMerged ? ofClass?.routingType : undefined);
}

function envoyProxyOf(
  object: Gateway | GatewayClass | undefined,
  resources: RoutingResources,
): EnvoyProxy | undefined {
  const ref = object?.parametersRef;
  if (ref?.group !== ENVOY_GATEWAY_GROUP || ref.kind !== 'EnvoyProxy') return undefined;
  const namespace = object?.kind === 'Gateway' ? object.metadata.namespace : ref.namespace;
  // A GatewayClass that names no namespace means this one.
  return resources.envoyProxy({ kind: 'EnvoyProxy', namespace: namespace ?? 'default', name: ref.name });
}
