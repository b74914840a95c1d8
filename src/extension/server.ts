import type { DescFile } from '@bufbuild/protobuf';
import type { Ref } from '../api/key.ts';
import type { ReadResources } from '../resources/resources.ts';
import type { DataPathMode } from '../traffic/data-path.ts';
import type { Clock } from '../api/clock.ts';
import { createEds } from './eds/server.ts';
import type { EdsTelemetry } from './eds/server.ts';
import type { Methods } from './grpc/method.ts';
import { hookMethods } from './hooks/methods.ts';
import { file_envoy_service_endpoint_v3 } from './proto/envoy/service/endpoint/v3_pb.ts';
import { file_envoygateway_extension } from './proto/envoygateway/extension_pb.ts';
import { clusterShape } from './shape.ts';
import { createView } from './resolution-cache.ts';

/** What the extension server is told. */
type ExtensionSettings = {
  /** How Envoys reach the mesh where nothing is decided for their Gateway. */
  readonly dataPath: DataPathMode;
  /** Where Envoys reach this server, such as mesh-extension-server.mesh-system.svc.cluster.local:5005. */
  readonly edsTarget: string;
  /** So long a message may be. */
  readonly messageBytes: number;
};

/** What the extension server is made of; its resources must have the indexes of the extension server. */
export type ExtensionParts = {
  readonly read: ReadResources;
  readonly settings: ExtensionSettings;
  readonly telemetry: EdsTelemetry;
  readonly clock: Clock;
};

/** Everything that the extension server answers, for whoever listens; not before the resources are read. */
export interface Extension {
  readonly methods: Methods;
  /** Where these methods are defined. */
  readonly files: readonly DescFile[];
  /** The revision of what the clusters of a Gateway must have; nothing where none of them is ours. */
  revisionOf(gateway: Ref<'Gateway'>): string | undefined;
  /** Follows no more changes. */
  close(): void;
}

/** Puts together what Envoy Gateway calls, what Envoys follow, and what tells others how it is. */
export function createExtension({ read, settings, telemetry, clock }: ExtensionParts): Extension {
  const { dataPath, edsTarget, messageBytes } = settings;
  const view = createView(read, { dataPath, shape: clusterShape(edsTarget) });
  const eds = createEds({
    assignments: view,
    clock,
    telemetry,
    unusedElsewhere: () => view.unusedElsewhere(),
  });
  const hooks = hookMethods({
    needsOf: cluster => view.needsOf(cluster),
    revisions: {
      revisionOf: gateway => view.revisionOf(gateway),
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
    revisionOf: gateway => view.revisionOf(gateway),
    close: () => {
      eds.close();
      view.close();
    },
  };
}
