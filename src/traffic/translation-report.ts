import type { Condition, Kinds } from '../api/generated/types.ts';
import type { Ref } from '../api/key.ts';

type MeshBinding = Kinds['MeshBinding'];

/** A Gateway, and the MeshBinding that makes Envoy Gateway translate it. */
export type GatewayBinding = {
  readonly gateway: Ref<'Gateway'>;
  /** The revision that the MeshBinding must have; undefined where the Gateway does not exist. */
  readonly revision: string | undefined;
  readonly binding: MeshBinding | undefined;
};

/** Whether Envoy Gateway has reported in a MeshBinding that it has translated the revision. */
export function hasReported({ gateway, revision, binding }: GatewayBinding): boolean {
  if (!binding || binding.spec.revision !== revision) return false;
  // A later attempt has the same revision.
  const since = (binding.metadata.generation ?? 0) - binding.spec.attempt;
  return acceptedIn(binding, gateway).some(({ observedGeneration = 0 }) => observedGeneration >= since);
}

/** When Envoy Gateway has last reported that it has translated a generation of a MeshBinding; undefined before the first. */
export function lastTranslationOf(gateway: Ref<'Gateway'>, binding: MeshBinding): string | undefined {
  return acceptedIn(binding, gateway)
    .map(({ lastTransitionTime }) => lastTransitionTime)
    .sort()
    .at(-1);
}

function acceptedIn({ status }: MeshBinding, { name }: Ref<'Gateway'>): readonly Condition[] {
  const ancestors = status?.ancestors?.filter(({ ancestorRef }) => ancestorRef.name === name) ?? [];
  return ancestors
    .flatMap(({ conditions = [] }) => conditions)
    .filter(({ type, status: accepted }) => type === 'Accepted' && accepted === 'True');
}
