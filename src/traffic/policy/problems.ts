import type { Ref } from '../../api/key.ts';
import { ENVOY_GATEWAY_GROUP } from '../../api/objects/backends.ts';
import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { refTo } from '../../api/objects/references.ts';
import type { Problem } from '../../api/problem.ts';
import type { BackendTrafficPolicy } from '../../api/objects/traffic-policy.ts';
import type { EnvoyClusterName } from '../envoy-cluster-name.ts';
import type { ResolvedRule } from '../resolve-route.ts';
import type { TrafficResources } from '../traffic-resources.ts';
import { titleOfBackend } from './levels.ts';
import { isRequired, MAX_PRIORITIES, rankOf } from './route-policy.ts';
import type { PolicyProblem } from './route-policy.ts';
import { serviceRoutingOf, zonePolicyOf } from './service-routing.ts';
import type { RoutingResources } from './service-routing.ts';
import { titleOfTrafficPolicy } from './traffic-policies.ts';

/** Whether the levels of a policy are used whatever endpoints the backends of its rules have. */
export type FailoverSupport =
  | { readonly is: 'without-levels' }
  | { readonly is: 'supported' }
  | { readonly is: 'unsupported'; readonly problem: Problem<'ServiceInRule' | 'DividedRule'> };

/**
 * How levels are supported at a Gateway. While a Service of an HTTPRoute or GRPCRoute has no endpoints, Envoy Gateway makes a
 * cluster for each backend, and sends nothing to those of MeshEndpoints; one that routes to the addresses of Services does not.
 */
export function failoverSupportOf(
  resources: RoutingResources & Pick<TrafficResources, 'route' | 'service'>,
  rules: readonly ResolvedRule[],
  gateway: Ref<'Gateway'>,
): FailoverSupport {
  const withLevels = rules.filter(({ levels }) => levels !== undefined);
  if (withLevels.length === 0) return { is: 'without-levels' };
  for (const rule of withLevels) {
    const { cluster, otherBackends } = rule;
    const services = otherBackends.map(({ ref }) => ref).filter(({ kind }) => kind === 'Service');
    const route = resources.route(cluster);
    if (!route || cluster.rule === 'only') continue;
    const divided = dividedProblem(resources, rule, route, gateway);
    if (divided) return { is: 'unsupported', problem: { ...divided, about: refTo(route) } };
    if (services.length === 0) continue;
    const { isByService, policy } = serviceRoutingOf(resources, route, cluster.rule, gateway);
    for (const ref of services) {
      const isHeadless = resources.service({ ...ref, kind: 'Service' })?.isHeadless === true;
      if (isByService && !isHeadless) continue;
      const [what, unless, more] = isHeadless
        ? [', and headless', 'whatever its routing type is', '']
        : ['', 'unless its routing type is Service', `, or ${routingFix(cluster, policy)}`];
      const text = `${titleOfBackend(ref)} is a backend of the route${what}: while it has no ready endpoints, Envoy Gateway fails its share of the requests, ${unless}`;
      const fix = `remove the Service from backendRefs and name it in spec.failover.levels alone${more}`;
      const about = refTo(route);
      return { is: 'unsupported', problem: { reason: 'ServiceInRule', about, text, fix } };
    }
  }
  return { is: 'supported' };
}

/** Why each backend of a rule has a cluster of its own, whatever endpoints there are. A single backend keeps that of the rule. */
function dividedProblem(
  resources: RoutingResources & Pick<TrafficResources, 'service'>,
  { cluster, backends, otherBackends, shares }: ResolvedRule,
  route: Route,
  gateway: Ref<'Gateway'>,
): Problem<'DividedRule'> | undefined {
  const refs = [...backends, ...otherBackends].map(({ ref }) => ref).filter(({ weight }) => weight > 0);
  if (refs.length < 2) return undefined;
  const zones = zonePolicyOf(resources, route, cluster.rule, gateway);
  const near = refs.find(
    ref => ref.kind === 'Service' && resources.service({ ...ref, kind: 'Service' })?.prefersZone,
  );
  const isMeshFiltered = shares?.mesh.some(({ filters }) => filters) === true;
  const filtered = (isMeshFiltered ? refs : otherBackends.map(({ ref }) => ref)).find(
    ({ filters }) => filters,
  );
  const [why, fix] = zones
    ? [`${titleOfTrafficPolicy(zones)} sets zoneAware`, 'remove loadBalancer.zoneAware from it']
    : near
      ? [
          `${titleOfBackend(near)} prefers its zone`,
          'remove trafficDistribution or the topology mode from it',
        ]
      : filtered
        ? [`${titleOfBackend(filtered)} has filters`, 'move them to the filters of the rule']
        : shares?.isApart
          ? ['the rule has a ServiceImport, or a Backend with host names', 'give it a route of its own']
          : [];
  if (why === undefined) return undefined;
  return {
    reason: 'DividedRule',
    at: ['spec', 'rules', cluster.rule],
    text: `requests are divided by weight, and no level is used: each backend of the rule has an Envoy cluster of its own, because ${why}`,
    fix: `${fix}, or keep one MeshEndpoints in backendRefs, and name Services in spec.failover.levels alone`,
  };
}

/** A policy of the Gateway, or another one of the route, would not apply beside the one that the route has. */
function routingFix({ kind, name }: EnvoyClusterName, existing: BackendTrafficPolicy | undefined): string {
  if (existing) return `set spec.routingType to Service in ${titleOfTrafficPolicy(existing)}`;
  const policy = {
    apiVersion: `${ENVOY_GATEWAY_GROUP}/v1alpha1`,
    kind: 'BackendTrafficPolicy',
    metadata: { name: `${name}-service-routing` },
    spec: {
      targetRefs: [{ group: GATEWAY_GROUP, kind, name }],
      // What the policy of a Gateway sets stays in effect.
      mergeType: 'StrategicMerge',
      routingType: 'Service',
    },
  };
  return `apply ${JSON.stringify(policy)}`;
}

/** The problems of the policy of a rule. */
export function problemsOfRule(rule: ResolvedRule): readonly PolicyProblem[] {
  const { policy, backends, levels } = rule;
  const unselected = backends
    .filter(({ endpoints }) => endpoints.length > 0)
    .filter(({ endpoints }) => !endpoints.some(({ endpoint }) => isRequired(policy, endpoint)))
    .map(({ ref, place }): PolicyProblem => {
      const text = `spec.endpoints.require selects no endpoint of MeshEndpoints ${ref.namespace}/${ref.name}, so it gets no traffic`;
      const fix = 'add the metadata to its endpoints, or correct require';
      return { reason: 'NoMatchingEndpoints', ...place, text, fix };
    });
  const priorities = countPriorities(rule);
  const found = [...(levels?.problems ?? []), ...unselected];
  if (priorities <= MAX_PRIORITIES) return found;
  const text = `cluster ${rule.cluster.text} would have ${priorities} priorities, and it has ${MAX_PRIORITIES} at most, so endpoints in later ones get no traffic`;
  const fix = 'list fewer levels or preferences, or give endpoints equal priorities';
  return [...found, { reason: 'TooManyPriorities', ...(policy && { about: refTo(policy) }), text, fix }];
}

/** How many priorities a rule has if Envoy can reach all of its endpoints. */
function countPriorities({ policy, backends, otherBackends, levels }: ResolvedRule): number {
  const levelOf = (index: number) => levels?.ofBackend.get(index) ?? 0;
  const endpoints = backends.flatMap(({ index, endpoints: list }) =>
    list
      .filter(({ endpoint }) => isRequired(policy, endpoint))
      .map(({ endpoint: { priority, metadata } }) => ({
        level: levelOf(index),
        priority,
        ...(metadata && { metadata }),
      })),
  );
  const others = otherBackends.map(({ index, priority }) => ({ level: levelOf(index), priority }));
  const beyond = (levels?.beyond ?? []).map(({ level }) => ({ level, priority: 0 }));
  return new Set([...endpoints, ...others, ...beyond].map(each => rankOf(policy, each))).size;
}
