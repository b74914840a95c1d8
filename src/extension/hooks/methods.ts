import type { DescMethod } from '@bufbuild/protobuf';
import type { Clock } from '../../api/clock.ts';
import type { Ref } from '../../api/key.ts';
import type { Log } from '../../telemetry/log.ts';
import type { extensionMetrics } from '../../telemetry/metrics.ts';
import type { Recorder } from '../../telemetry/metric-recorder.ts';
import type { RuleShares } from '../../traffic/rule-shares.ts';
import type { EnvoyClusterSettings } from '../../traffic/settings/envoy-cluster-settings.ts';
import { envoyClusterEditor } from '../envoy-cluster/envoy-cluster.ts';
import { envoyRouteEditor } from '../envoy-route/envoy-route.ts';
import { pathOf } from '../grpc/method.ts';
import type { Bytes, Methods, Unary } from '../grpc/method.ts';
import { limitedLog } from '../../telemetry/limited-log.ts';
import { EnvoyGatewayExtension } from '../proto/envoygateway/extension_pb.ts';
import { bytesField, isMessage, messageOf } from '../wire.ts';
import { bindingsIn, MAX_BINDINGS } from './bindings.ts';
import { revisionWait } from './revision-wait.ts';
import type { Revisions } from './revision-wait.ts';
import { malformedRequest, modifyTranslation } from './translation.ts';
import type { FailOpen } from './translation.ts';

type HookTelemetry = { readonly log: Log; readonly record: Recorder<typeof extensionMetrics> };

export type HookDeps = {
  /**
   * Of resolution-cache.ts, called for each cluster of a translation, with the Gateways that have MeshBindings in it;
   * undefined if the cluster must stay unchanged, as most do.
   */
  readonly settingsOf: (
    cluster: string,
    gateways: readonly Ref<'Gateway'>[],
  ) => EnvoyClusterSettings | undefined;
  /** Called for each route of a translation, with the cluster of its rule. */
  readonly sharesOf: (cluster: string) => RuleShares | undefined;
  /** Whether Envoy connects to the MeshEndpoints of a rule through proxies, by the cluster of the rule and the same Gateways. */
  readonly isProxied: (cluster: string, gateways: readonly Ref<'Gateway'>[]) => boolean;
  readonly revisions: Revisions;
  /** The address that Envoy dials for EDS, such as mesh-extension-server.mesh-system.svc.cluster.local:5005. */
  readonly edsTarget: string;
  /** Max size of a response. */
  readonly messageBytes: number;
  readonly clock: Clock;
  readonly telemetry: HookTelemetry;
};

/**
 * The hooks of Envoy Gateway. It calls each configured hook in sequence, so the Translation hook does everything in one
 * call; the others, which need not be configured, return their message unchanged.
 */
export function hookMethods(deps: HookDeps): Methods {
  const { settingsOf, sharesOf, isProxied, revisions, edsTarget, messageBytes, clock, telemetry } = deps;
  const failOpen = failingOpen(telemetry, clock);
  const editCluster = envoyClusterEditor({ target: edsTarget });
  const countClusters = (clusters: number) => telemetry.record.meshClusters(TRANSLATION, clusters);
  const waitForRevisions = revisionWait(
    {
      revisionOf: gateway => failOpen(gateway.name, () => revisions.revisionOf(gateway)),
      onChange: listener => revisions.onChange(listener),
    },
    clock,
    end => telemetry.record.revisionWaits({ end }),
  );
  const translate = (request: Uint8Array): Bytes | Promise<Bytes> => {
    const bindings = bindingsIn(request);
    if (bindings.length >= MAX_BINDINGS) failOpen('MeshBindings', tooManyBindings);
    const gateways = bindings.map(({ gateway }) => gateway);
    const respond = () =>
      modifyTranslation(request, {
        settingsOf: cluster => settingsOf(cluster, gateways),
        editCluster,
        routeEditor: envoyRouteEditor({ sharesOf, isProxied: rule => isProxied(rule, gateways) }),
        failOpen,
        countClusters,
        messageBytes,
      });
    const reached = waitForRevisions(bindings);
    return reached ? reached.then(respond) : respond();
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

function tooManyBindings(): never {
  throw new Error(
    `a translation has ${MAX_BINDINGS} MeshBindings or more: merge fewer Gateways, since the settings of others are not read`,
  );
}

const TRANSLATION = { hook: 'translation' } as const;

/**
 * The one place that catches errors in a hook: what cannot be computed stays unchanged, because an error returned to Envoy
 * Gateway would freeze all routes of a Gateway. Errors are counted, and logged at most once a second.
 */
function failingOpen({ log, record }: HookTelemetry, clock: Pick<Clock, 'now'>): FailOpen {
  const limited = limitedLog(clock);
  return (subject, compute) => {
    try {
      return compute();
    } catch (error) {
      record.hookFailures(TRANSLATION);
      limited(failures =>
        log.error('unexpected error in a hook', { ...TRANSLATION, name: subject, error, failures }),
      );
      return undefined;
    }
  };
}

function unary(method: DescMethod, call: Unary['call']): readonly [string, Unary] {
  return [pathOf(method), { kind: 'unary', call }];
}

/** The field of the message in the requests and responses of hooks about one message. */
const MESSAGE = 1;

/** Responds with the message of the request, or without one if it has none. */
function unchanged(request: Uint8Array): Uint8Array {
  if (!isMessage(request)) throw malformedRequest();
  const message = messageOf(request, MESSAGE);
  return message ? bytesField(MESSAGE, message) : new Uint8Array();
}
