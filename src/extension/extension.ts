import type { DescFile } from '@bufbuild/protobuf';
import type { Clock } from '../api/clock.ts';
import type { Ref } from '../api/key.ts';
import type { ReadResources } from '../store/resources.ts';
import type { AddressGuard } from '../traffic/address-guard.ts';
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
  /** The namespace of the mesh pods; undefined where there are none. */
  readonly podNamespace?: string | undefined;
  /** The namespace of the ConfigMap `mesh-trust`; undefined where the ConfigMaps of users are read themselves. */
  readonly trustNamespace?: string | undefined;
  /** Which addresses may get traffic. */
  readonly guard?: AddressGuard | undefined;
  /** Max size of a message. */
  readonly messageBytes: number;
};

export type ExtensionDeps = {
  /** Must have the `extensionIndexes`. */
  readonly read: ReadResources;
  readonly options: ExtensionOptions;
  readonly telemetry: EdsTelemetry;
  readonly clock: Clock;
};

/** The gRPC services of the extension server; they must not be served before resources have synced. */
export interface Extension {
  readonly methods: Methods;
  /** The files that define these methods. */
  readonly files: readonly DescFile[];
  /** The revision of the settings of a Gateway's clusters; undefined if none has a mesh backend. */
  revisionOf(gateway: Ref<'Gateway'>): string | undefined;
  /** Unsubscribes from resources. */
  close(): void;
}

/** Creates the hooks of Envoy Gateway and the EDS server over one cache. */
export function createExtension({ read, options, telemetry, clock }: ExtensionDeps): Extension {
  const { edsTarget, messageBytes } = options;
  const cache = createResolutionCache(read, options);
  const eds = createEds({
    snapshots: cache,
    clock,
    telemetry,
    unusedOfMixedRules: () => cache.unusedOfMixedRules(),
  });
  const hooks = hookMethods({
    settingsOf: cluster => cache.settingsOf(cluster),
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
    revisionOf: gateway => cache.revisionOf(gateway),
    close: () => {
      eds.close();
      cache.close();
    },
  };
}
