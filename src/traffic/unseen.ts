import type { Ref, RouteKind } from '../api/key.ts';
import { titleOfSubject } from '../api/problem.ts';
import type { ProblemAt } from '../api/problem.ts';

/** That Envoy Gateway does not see the MeshEndpoints of a route, though they exist. */
export function notSeen(about: Ref<RouteKind>): ProblemAt<'MeshEndpoints Programmed'> {
  const text = `Envoy Gateway reports BackendNotFound for ${titleOfSubject(about)} though its MeshEndpoints exist, and answers its requests with 500`;
  const fix =
    'restart it if it started before the CRD of MeshEndpoints was served, as mesh-gateway doctor shows, such as by kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway; else let its watch include their namespaces';
  return { reason: 'NotSeen', about, text, fix };
}
