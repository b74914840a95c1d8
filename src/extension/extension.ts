import type { DescFile } from '@bufbuild/protobuf';
import type { Clock } from '../api/clock.ts';
import type { Tracking } from '../store/tracking.ts';
import type { TrafficValues } from '../store/traffic/values.ts';
import type { DataPathMode } from '../traffic/data-path.ts';
import { createEds } from './eds/server.ts';
import type { EdsTelemetry } from './eds/server.ts';
import type { Methods } from './grpc/method.ts';
import { hookMethods } from './hooks/methods.ts';
import { file_envoy_service_endpoint_v3 } from './proto/envoy/service/endpoint/v3_pb.ts';
import { file_envoygateway_extension } from './proto/envoygateway/extension_pb.ts';
import { createResolutionCache } from './resolution-cache.ts';

type ExtensionOptions = {
  /** The data path of Gateways without a MeshBinding. */
  readonly dataPath: DataPathMode;
  /** The address that Envoy dials for EDS, such as mesh-extension-server.mesh-system.svc.cluster.local:5005. */
  readonly edsTarget: string;
  /** Max size of a message. */
  readonly messageBytes: number;
};

export type ExtensionDeps = {
  readonly tracking: Tracking;
  readonly traffic: TrafficValues;
  readonly options: ExtensionOptions;
  readonly telemetry: EdsTelemetry;
  readonly clock: Clock;
};

/** The gRPC services of the extension server; they must not be served before resources have synced. */
export interface Extension {
  readonly methods: Methods;
  /** The files that define these methods. */
  readonly files: readonly DescFile[];
  /** Ends all streams of EDS. */
  close(): void;
}

/** Creates the hooks of Envoy Gateway and the EDS server over one cache. */
export function createExtension({ tracking, traffic, options, telemetry, clock }: ExtensionDeps): Extension {
  const { edsTarget, messageBytes, dataPath } = options;
  const read = tracking.untracked;
  const cache = createResolutionCache(read, traffic, dataPath);
  const eds = createEds({
    snapshots: cache,
    clock,
    telemetry,
    unusedOfMixedRules: () => cache.unusedOfMixedRules(),
  });
  const hooks = hookMethods({
    settingsOf: (cluster, gateways) => cache.settingsOf(cluster, gateways),
    sharesOf: cluster => cache.sharesOf(cluster),
    isProxied: (cluster, gateways) => cache.isProxied(cluster, gateways),
    revisions: {
      revisionOf: gateway => cache.revisionOf(gateway),
      onChange: listener => read.subscribe(() => listener()),
    },
    edsTarget,
    messageBytes,
    clock,
    telemetry: { log: telemetry.log, record: telemetry.metrics.record },
  });
  return {
    methods: new Map([...hooks, ...eds.methods]),
    files: [file_envoygateway_extension, file_envoy_service_endpoint_v3],
    close: () => eds.close(),
  };
}
