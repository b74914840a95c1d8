import type { RouteTarget } from '../../api/generated/types.ts';
import type { ResolvedRule } from '../resolve-route.ts';
import { isRequired, MAX_PRIORITIES, rankOf } from './route-policy.ts';

/** Why a policy does not do for a rule what it was written for. */
export type PolicyProblem = {
  readonly reason: 'NoMeshEndpoints' | 'NoMatchingEndpoints' | 'TooManyPriorities';
  /** For users: what is wrong, and the fix. */
  readonly message: string;
};

/** The problems of the policy of some rules: those of one of its targets that it applies to. */
export function policyProblems(
  target: RouteTarget,
  rules: readonly ResolvedRule[],
): readonly PolicyProblem[] {
  if (rules.length > 0) return rules.flatMap(problemsOfRule);
  const message = `${titleOf(target)} has no MeshEndpoints among its backends, so that this policy changes nothing: add one to backendRefs, or correct spec.targetRefs`;
  return [{ reason: 'NoMeshEndpoints', message }];
}

/** A target as users read it, such as rule checkout of HTTPRoute web. */
export function titleOf({ kind, name, sectionName }: RouteTarget): string {
  return sectionName === undefined ? `${kind} ${name}` : `rule ${sectionName} of ${kind} ${name}`;
}

function problemsOfRule(rule: ResolvedRule): readonly PolicyProblem[] {
  const { policy, backends } = rule;
  const unselected = backends
    .filter(({ endpoints }) => endpoints.length > 0)
    .filter(({ endpoints }) => !endpoints.some(({ endpoint }) => isRequired(policy, endpoint)))
    .map(({ ref, path }): PolicyProblem => {
      const message = `${path}: spec.endpoints.require selects no endpoint of MeshEndpoints ${ref.namespace}/${ref.name}, so that it gets no traffic: add the metadata to its endpoints, or correct require`;
      return { reason: 'NoMatchingEndpoints', message };
    });
  const priorities = countPriorities(rule);
  if (priorities <= MAX_PRIORITIES) return unselected;
  const message = `cluster ${rule.cluster.text} would have ${priorities} priorities, and it has ${MAX_PRIORITIES} at most, so that endpoints in later ones get no traffic: list fewer preferences, or give endpoints equal priorities`;
  return [...unselected, { reason: 'TooManyPriorities', message }];
}

/** How many priorities a rule has if Envoy can reach all of its endpoints. */
function countPriorities({ policy, backends, otherBackends }: ResolvedRule): number {
  const endpoints = backends.flatMap(backend => backend.endpoints.map(({ endpoint }) => endpoint));
  const used = [...endpoints.filter(endpoint => isRequired(policy, endpoint)), ...otherBackends];
  return new Set(used.map(each => rankOf(policy, each))).size;
}
