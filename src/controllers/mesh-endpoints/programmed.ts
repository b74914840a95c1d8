import type { ConditionUpdate } from '../../api/conditions.ts';
import type { Ref, RouteKind } from '../../api/key.ts';
import { conditionOf } from '../../api/problem.ts';
import type { ProblemAt } from '../../api/problem.ts';
import { notSeen } from '../../traffic/unseen.ts';

type Problem = ProblemAt<'MeshEndpoints Programmed'>;

/** A Gateway that a route to a MeshEndpoints attaches to. */
export type NamedGateway = {
  readonly gateway: Ref<'Gateway'>;
  /**
   * Whether Envoy Gateway has translated a revision that has the present settings of these routes. It is not asked where that does
   * not matter.
   */
  readonly isTranslated: () => boolean;
};

/*
 * The condition Programmed, by the Gateways that the routes of an object attach to:
 *
 *   none                                                               Unknown
 *   Envoy Gateway has translated its routes for each                   True
 *   else, if the object and its routes are as when it was True         True: other objects have changed
 *   else                                                               Unknown
 *
 * Where it would be True, and Envoy Gateway has not seen the backends of a route, it is False.
 */

/** Whether Envoy Gateway has translated the present state of an object and its routes. */
export function programmedOf(
  gateways: readonly NamedGateway[],
  wasProgrammed: boolean,
  unseen: Ref<RouteKind> | undefined,
): ConditionUpdate {
  const waiting = wasProgrammed ? undefined : gateways.find(({ isTranslated }) => !isTranslated());
  const missing = gateways.length === 0 ? NO_GATEWAY : waiting && missingReport(waiting);
  const problem = missing ?? (unseen && notSeen(unseen));
  return conditionOf('MeshEndpoints Programmed', problem ? [problem] : [], {
    reason: 'Programmed',
    message: 'Envoy Gateway has translated the routes to this object',
  });
}

const NO_GATEWAY: Problem = {
  reason: 'NotReported',
  text: 'no Gateway exists that accepts a route to this object',
  fix: 'see parentRefs of its routes, and allowedRoutes and allowedListeners of their Gateways',
};

/** Constant for a Gateway, so that no change of its MeshBinding alone is a write of the status of its objects. */
function missingReport({ gateway: about }: NamedGateway): Problem {
  const text = `Envoy Gateway has not reported in MeshBinding ${about.namespace}/${about.name} that it has translated the present revision`;
  const fix =
    'check that it runs and has policyResources with kind MeshBinding; without a cluster it never does';
  return { reason: 'NotReported', about, text, fix };
}
