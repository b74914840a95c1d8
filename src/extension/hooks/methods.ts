import type { EnvoyClusterSettings } from '../../traffic/envoy-cluster-settings.ts';
import { meshClusters } from '../envoy-cluster/envoy-cluster.ts';
import type { Clock } from '../../api/clock.ts';
import type { Bytes, Methods, Unary } from '../grpc/method.ts';
import { EnvoyGatewayExtension } from '../proto/envoygateway/extension_pb.ts';
import { bytesField, isMessage, messageOf } from '../wire.ts';
import { Attempts } from './attempts.ts';
import type { HookTelemetry } from './attempts.ts';
import { waitForRevisions } from './revision-wait.ts';
import type { Revisions } from './revision-wait.ts';
import { answerTranslation, brokenRequest } from './translation.ts';

/** What the hooks need to know, and whom they tell. */
export type HookParts = {
  /** What a cluster must have; nothing where it is not ours, which most are: it is asked of each. */
  readonly settingsOf: (cluster: string) => EnvoyClusterSettings | undefined;
  readonly revisions: Revisions;
  /** Where Envoys reach our EDS, such as mesh-extension-server.mesh-system.svc.cluster.local:5005. */
  readonly edsTarget: string;
  /** So long an answer may be. */
  readonly messageBytes: number;
  readonly clock: Clock;
  readonly telemetry: HookTelemetry;
};

/**
 * The hooks of Envoy Gateway. It calls them in sequence, so that one alone does everything for a whole translation; the
 * others, which nobody has to configure, answer with what they are given.
 */
export function hookMethods(parts: HookParts): Methods {
  const { settingsOf, revisions, edsTarget, messageBytes, clock, telemetry } = parts;
  const attempts = new Attempts(telemetry, clock);
  const clusters = { settingsOf, meshCluster: meshClusters({ target: edsTarget }), attempts };
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
    unary(method.postRouteModify, unchanged),
    unary(method.postVirtualHostModify, unchanged),
    unary(method.postHTTPListenerModify, unchanged),
    unary(method.postClusterModify, unchanged),
    unary(method.postEndpointsModify, unchanged),
    unary(method.postTranslateModify, translate),
  ]);
}

function unary({ name }: { readonly name: string }, call: Unary['call']): readonly [string, Unary] {
  return [`/${EnvoyGatewayExtension.typeName}/${name}`, { is: 'unary', call }];
}

/** In requests and answers of hooks about one message, this field is the message. */
const MESSAGE = 1;

/** The answer of a hook about one message: the message as it came, or none where none was sent. */
function unchanged(request: Uint8Array): Uint8Array {
  if (!isMessage(request)) throw brokenRequest();
  const message = messageOf(request, MESSAGE);
  return message ? bytesField(MESSAGE, message) : new Uint8Array();
}
