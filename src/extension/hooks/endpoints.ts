import type { Assignment } from '../../traffic/assignment.ts';
import type { ClusterNeeds } from '../../traffic/cluster-needs.ts';
import { fillLocalities } from '../localities.ts';
import { ClusterLoadAssignmentSchema } from '../proto/envoy/config/endpoint/v3_pb.ts';
import { textOf } from '../wire.ts';
import type { Attempts } from './attempts.ts';
import { answerWith } from './embedded.ts';

/** What endpoints are taken from. */
export type EndpointsParts = {
  readonly needsOf: (cluster: string) => ClusterNeeds | undefined;
  /** Without knowledge of the Gateway: the hook is not told of it. */
  readonly assignmentOf: (cluster: string) => Assignment | undefined;
  readonly attempts: Attempts;
};

/**
 * Answers PostEndpointsModify: where a rule mixes our backends with others, Envoy Gateway goes on to serve its endpoints,
 * and ours are filled in. Those of all other clusters are theirs alone, or served by our EDS.
 */
export function answerEndpoints(request: Uint8Array, parts: EndpointsParts): Uint8Array {
  const { needsOf, assignmentOf, attempts } = parts;
  return answerWith(request, endpoints => {
    const name = textOf(endpoints, ClusterLoadAssignmentSchema.field.clusterName.number) ?? '';
    return attempts.change('endpoints', name, endpoints, () => {
      const isMixed = needsOf(name)?.endpointsFrom === 'envoy-gateway';
      const assignment = isMixed ? assignmentOf(name) : undefined;
      if (!assignment) return endpoints;
      attempts.served('endpoints');
      return fillLocalities(endpoints, assignment);
    });
  });
}
