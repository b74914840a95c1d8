import { ENVOY_GATEWAY_GROUP } from '../../api/objects/backends.ts';
import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import type { Gateway, ListenerSet, Route } from '../../api/objects/gateway-api.ts';
import { keyOf } from '../../api/key.ts';
import type { Ref } from '../../api/key.ts';
import { selects } from '../../api/objects/label-selector.ts';
import type { BackendTrafficPolicy, PolicyTargetSelector } from '../../api/objects/traffic-policy.ts';
import { selectsNamespace } from '../attachments.ts';
import type { EnvoyClusterName } from '../envoy-cluster-name.ts';
import { isGranted } from '../permissions.ts';
import type { PolicyTargetKind, TrafficResources } from '../traffic-resources.ts';

/** What a BackendTrafficPolicy can target: a route, a Gateway or a ListenerSet, or with `sectionName` a rule or a listener. */
export type PolicyTarget = Ref<PolicyTargetKind> & {
  readonly sectionName?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
};

/** The rule, if it has a name, and the route. Envoy Gateway makes one cluster for all rules of an L4 route. */
export function routeTargets(route: Route, rule: EnvoyClusterName['rule']): readonly PolicyTarget[] {
  const target = policyTargetOf(route);
  const sectionName = route.rules[rule === 'only' ? 0 : rule]?.name;
  return [...(sectionName === undefined ? [] : [{ ...target, sectionName }]), target];
}

/** An object as the target of policies. */
export function policyTargetOf({ kind, metadata }: Route | Gateway | ListenerSet): PolicyTarget {
  const { namespace = '', name, labels = {} } = metadata;
  return { kind, namespace, name, labels };
}

/** Whether a policy targets exactly this. */
export function isTarget(
  { metadata: { namespace = '' }, targetRefs, targetSelectors }: BackendTrafficPolicy,
  target: PolicyTarget,
  resources: Pick<TrafficResources, 'namespace' | 'grants'>,
): boolean {
  const isNamed = targetRefs.some(
    ({ group, kind, name, sectionName }) =>
      group === GATEWAY_GROUP &&
      kind === target.kind &&
      name === target.name &&
      sectionName === target.sectionName,
  );
  if (isNamed && namespace === target.namespace) return true;
  if (target.sectionName !== undefined) return false;
  return targetSelectors.some(selector => isSelected(selector, namespace, target, resources));
}

function isSelected(
  { group, kind, namespaces, ...labels }: PolicyTargetSelector,
  namespace: string,
  target: PolicyTarget,
  resources: Pick<TrafficResources, 'namespace' | 'grants'>,
): boolean {
  if (group !== GATEWAY_GROUP || kind !== target.kind || !selects(labels, target.labels)) return false;
  const isInNamespace = selectsNamespace(resources, namespaces, { namespace }, target.namespace);
  const policy = { group: ENVOY_GATEWAY_GROUP, kind: 'BackendTrafficPolicy', namespace };
  return isInNamespace && isGranted(resources, policy, { ...target, group: GATEWAY_GROUP });
}

/** The keys of the objects that a policy names, and `SELECTING` for one that selects objects by labels. */
export function targetKeys({
  metadata: { namespace = '' },
  targetRefs,
  targetSelectors,
}: BackendTrafficPolicy): readonly string[] {
  const named = targetRefs.map(({ kind, name }) =>
    keyOf({ kind: kind as PolicyTargetKind, namespace, name }),
  );
  return [...new Set(named), ...(targetSelectors.length > 0 ? [SELECTING] : [])];
}

/** What `targetKeys` has of a policy that selects objects by labels. */
export const SELECTING = 'selecting';

/** A policy as users read it. */
export function titleOfTrafficPolicy({ metadata: { namespace = '', name } }: BackendTrafficPolicy): string {
  return `BackendTrafficPolicy ${namespace}/${name}`;
}
