import type { RouteTarget } from '../../api/generated/types.ts';
import type { BackendRef } from '../../api/objects/gateway-api.ts';
import type { ResolvedRule } from '../resolve-route.ts';
import { isRequired, MAX_PRIORITIES, rankOf } from './route-policy.ts';
import type { PolicyProblem } from './route-policy.ts';

/** The problems of the policy of some rules: those of one of its targets that it applies to. */
export function policyProblems(
  target: RouteTarget,
  rules: readonly ResolvedRule[],
): readonly PolicyProblem[] {
  if (rules.length > 0) return rules.flatMap(problemsOfRule);
  const message = `${titleOfTarget(target)} has no MeshEndpoints among its backends, so that this policy changes nothing: add one to backendRefs, or correct spec.targetRefs`;
  return [{ reason: 'NoMeshEndpoints', message }];
}

/** Whether the levels of a policy are used whatever endpoints the backends of its rules have. */
export type FailoverSupport =
  | { readonly is: 'without-levels' }
  | { readonly is: 'supported' }
  /** It depends on the routing type of Envoy Gateway. */
  | { readonly is: 'service-in-rule'; readonly service: BackendRef };

/**
 * How levels are supported. While a Service of an HTTPRoute or GRPCRoute has no endpoints, Envoy Gateway makes a cluster for
 * each backend, and sends nothing to those of MeshEndpoints; one that routes to the addresses of Services does not.
 */
export function failoverSupportOf(rules: readonly ResolvedRule[]): FailoverSupport {
  const withLevels = rules.filter(({ levels }) => levels !== undefined);
  if (withLevels.length === 0) return { is: 'without-levels' };
  const [service] = withLevels
    .filter(({ cluster: { rule } }) => rule !== 'only')
    .flatMap(({ otherBackends }) => otherBackends.filter(({ ref }) => ref.kind === 'Service'));
  return service ? { is: 'service-in-rule', service: service.ref } : { is: 'supported' };
}

/** A target as users read it, such as rule checkout of HTTPRoute web. */
export function titleOfTarget({ kind, name, sectionName }: RouteTarget): string {
  return sectionName === undefined ? `${kind} ${name}` : `rule ${sectionName} of ${kind} ${name}`;
}

/** The problems of the policy of a rule. */
export function problemsOfRule(rule: ResolvedRule): readonly PolicyProblem[] {
  const { policy, backends, levels } = rule;
  const unselected = backends
    .filter(({ endpoints }) => endpoints.length > 0)
    .filter(({ endpoints }) => !endpoints.some(({ endpoint }) => isRequired(policy, endpoint)))
    .map(({ ref, path }): PolicyProblem => {
      const message = `${path}: spec.endpoints.require selects no endpoint of MeshEndpoints ${ref.namespace}/${ref.name}, so that it gets no traffic: add the metadata to its endpoints, or correct require`;
      return { reason: 'NoMatchingEndpoints', message };
    });
  const priorities = countPriorities(rule);
  const found = [...(levels?.problems ?? []), ...unselected];
  if (priorities <= MAX_PRIORITIES) return found;
  const message = `cluster ${rule.cluster.text} would have ${priorities} priorities, and it has ${MAX_PRIORITIES} at most, so that endpoints in later ones get no traffic: list fewer levels or preferences, or give endpoints equal priorities`;
  return [...found, { reason: 'TooManyPriorities', message }];
}

/** How many priorities a rule has if Envoy can reach all of its endpoints. */
function countPriorities({ policy, backends, otherBackends, levels }: ResolvedRule): number {
  const levelOf = (index: number) => levels?.ofBackend.get(index) ?? 0;
  const endpoints = backends.flatMap(({ index, endpoints: list }) =>
    list
      .filter(({ endpoint }) => isRequired(policy, endpoint))
      .map(({ endpoint: { priority, metadata } }) => ({
        ...{ level: levelOf(index), priority },
        ...(metadata && { metadata }),
      })),
  );
  const others = otherBackends.map(({ index, priority }) => ({ level: levelOf(index), priority }));
  const beyond = (levels?.beyond ?? []).map(({ level }) => ({ level, priority: 0 }));
  return new Set([...endpoints, ...others, ...beyond].map(each => rankOf(policy, each))).size;
}
