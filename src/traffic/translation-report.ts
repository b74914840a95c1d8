import type { Condition, Kinds } from '../api/generated/types.ts';
import type { Ref } from '../api/key.ts';

type MeshBinding = Kinds['MeshBinding'];

/** Whether Envoy Gateway has reported that it has translated the revision of a MeshBinding. */
export function hasReported(gateway: Ref<'Gateway'>, binding: MeshBinding | undefined): boolean {
  return binding !== undefined && translatedGeneration(gateway, binding) >= firstGenerationOf(binding);
}

/** The generation since which a MeshBinding has its revision: a later attempt has the same one. */
export function firstGenerationOf({ metadata: { generation = 0 }, spec }: MeshBinding): number {
  return generation - spec.attempt;
}

/** The last generation of a MeshBinding that Envoy Gateway has reported as translated; -1 before the first. */
export function translatedGeneration(gateway: Ref<'Gateway'>, binding: MeshBinding): number {
  return Math.max(
    -1,
    ...acceptedIn(binding, gateway).map(({ observedGeneration = 0 }) => observedGeneration),
  );
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
