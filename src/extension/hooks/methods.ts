import type { Assignment } from '../../traffic/assignment.ts';
import type { ClusterNeeds } from '../../traffic/cluster-needs.ts';
import { meshClusters } from '../cluster.ts';
import type { Clock } from '../../api/clock.ts';
import type { Bytes, Methods, Unary } from '../grpc/method.ts';
import { EnvoyGatewayExtension } from '../proto/envoygateway/extension_pb.ts';
import { Attempts } from './attempts.ts';
import type { HookTelemetry } from './attempts.ts';
import { answerCluster } from './cluster.ts';
import { answerWith } from './embedded.ts';
import { answerEndpoints } from './endpoints.ts';
import { answerRoute } from './route.ts';
import type { BackendCluster } from './route.ts';
import { waitForRevisions } from './revision-wait.ts';
import type { Revisions } from './revision-wait.ts';
import { answerTranslation } from './translation.ts';

/** What the hooks need to know, and whom they tell. */
export type HookParts = {
  /** What a cluster must have; nothing where it is not ours, which most are: it is asked of each. */
  readonly needsOf: (cluster: string) => ClusterNeeds | undefined;
  readonly assignmentOf: (cluster: string) => Assignment | undefined;
  /** The clusters that our backends of a rule have where each backend has one of its own. */
  readonly backendsOf: (rule: string) => readonly BackendCluster[];
  readonly revisions: Revisions;
  /** Where Envoys reach our EDS, such as mesh-extension-server.mesh-system.svc.cluster.local:5005. */
  readonly edsTarget: string;
  /** So long an answer may be. */
  readonly messageBytes: number;
  readonly clock: Clock;
  readonly telemetry: HookTelemetry;
};

/** The hooks of Envoy Gateway; those that serve nothing of ours answer with what they are given. */
export function hookMethods(parts: HookParts): Methods {
  const { needsOf, assignmentOf, backendsOf, revisions, edsTarget, messageBytes, clock, telemetry } = parts;
  const attempts = new Attempts(telemetry, clock);
  const clusters = { needsOf, meshCluster: meshClusters({ target: edsTarget }), attempts };
  const wait = waitForRevisions(
    {
      revisionOf: gateway =>
        attempts.change('translation', gateway.name, undefined, () => revisions.revisionOf(gateway)),
      onChange: listener => revisions.onChange(listener),
    },
    clock,
    end => telemetry.record.revisionWaits({ end }),
  );
  const translate = (request: Uint8Array): Bytes | Promise<Bytes> => {
    const answer = () => answerTranslation(request, { ...clusters, messageBytes });
    return wait(request)?.then(answer) ?? answer();
  };
  const { method } = EnvoyGatewayExtension;
  return new Map([
    unary(method.postRouteModify, request => answerRoute(request, { backendsOf, attempts })),
    unary(method.postVirtualHostModify, unchanged),
    unary(method.postHTTPListenerModify, unchanged),
    unary(method.postClusterModify, request => answerCluster(request, clusters)),
    unary(method.postEndpointsModify, request =>
      answerEndpoints(request, { needsOf, assignmentOf, attempts }),
    ),
    unary(method.postTranslateModify, translate),
  ]);
}

function unary({ name }: { readonly name: string }, call: Unary['call']): readonly [string, Unary] {
  return [`/${EnvoyGatewayExtension.typeName}/${name}`, { is: 'unary', call }];
}

function unchanged(request: Uint8Array): Uint8Array {
  return answerWith(request, message => message);
}
