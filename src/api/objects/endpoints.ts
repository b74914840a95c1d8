import type { Kinds, MeshEndpoint } from '../generated/types.ts';

/** The endpoints of a MeshEndpoints, in the order in which they get traffic. */
export function endpointsOf({ spec }: Pick<Kinds['MeshEndpoints'], 'spec'>): readonly MeshEndpoint[] {
  return spec.endpoints ?? [];
}
