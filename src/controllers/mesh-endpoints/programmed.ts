import type { ConditionUpdate } from '../../api/conditions.ts';
import type { Kinds } from '../../api/generated/types.ts';
import type { Ref } from '../../api/key.ts';

/** A Gateway of a route to a MeshEndpoints. */
export type NamedGateway = {
  readonly gateway: Ref<'Gateway'>;
  readonly exists: boolean;
  /** Whether Envoy Gateway has translated its present revision. It is not asked where that does not matter. */
  readonly isTranslated: () => boolean;
};

/** A Gateway, and the MeshBinding that makes Envoy Gateway translate it. */
export type GatewayBinding = {
  readonly gateway: Ref<'Gateway'>;
  /** The revision that the MeshBinding must have; undefined where the Gateway does not exist. */
  readonly revision: string | undefined;
  readonly binding: Kinds['MeshBinding'] | undefined;
};

/*
 * The condition Programmed, by the Gateways that the routes of an object name:
 *
 *   none exists                                                        Unknown
 *   Envoy Gateway has accepted the present revision of each            True
 *   else, if the object and its routes are as when it was True         True: other objects have changed
 *   else                                                               Unknown
 */

/** Whether Envoy Gateway has translated the present state of an object and its routes. */
export function programmedOf(gateways: readonly NamedGateway[], wasProgrammed: boolean): ConditionUpdate {
  const type = 'Programmed';
  const existing = gateways.filter(({ exists }) => exists);
  const waiting = wasProgrammed ? undefined : existing.find(({ isTranslated }) => !isTranslated());
  const missing = existing.length === 0 ? NO_GATEWAY : waiting && missingReport(waiting);
  if (missing === undefined) {
    const message = 'Envoy Gateway has translated the routes to this object';
    return { type, status: 'True', reason: 'Programmed', message };
  }
  return { type, status: 'Unknown', reason: 'NotReported', message: missing };
}

const NO_GATEWAY = 'no Gateway exists that a route to this object names in parentRefs';

/** Constant for a Gateway, so that no change of its MeshBinding alone is a write of the status of its objects. */
function missingReport({ gateway: { namespace, name } }: NamedGateway): string {
  return `Envoy Gateway has not reported in MeshBinding ${namespace}/${name} that it has translated the present revision: check that it runs and has policyResources with kind MeshBinding; without a cluster it never does`;
}

/** Whether Envoy Gateway has reported in a MeshBinding that it has translated the revision. */
export function hasReported({ gateway, revision, binding }: GatewayBinding): boolean {
  if (!binding || binding.spec.revision !== revision) return false;
  const { metadata, spec, status } = binding;
  // A later attempt has the same revision.
  const since = (metadata.generation ?? 0) - spec.attempt;
  const ancestors = status?.ancestors?.filter(({ ancestorRef }) => ancestorRef.name === gateway.name) ?? [];
  return ancestors
    .flatMap(({ conditions = [] }) => conditions)
    .some(
      ({ type, status: accepted, observedGeneration = 0 }) =>
        type === 'Accepted' && accepted === 'True' && observedGeneration >= since,
    );
}
