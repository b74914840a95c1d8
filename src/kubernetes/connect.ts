import type { Clock } from '../api/clock.ts';
import type { ResourceKind } from '../api/key.ts';
import { REFERENCE_READS } from '../api/shares.ts';
import type { restClientMetrics } from '../telemetry/metrics.ts';
import type { Recorder } from '../telemetry/metric-recorder.ts';
import { restConfigSource } from './auth/config-source.ts';
import type { SourceTelemetry } from './reflector/observer.ts';
import { createSource } from './reflector/source.ts';
import { DEFAULT_TIMING } from './reflector/state.ts';
import type { Timing } from './reflector/state.ts';
import { openTransport } from './transport/open-transport.ts';
import type { KubeTransport } from './transport/transport.ts';
import { createWriter } from './write/writer.ts';
import type { Fence } from './write/fenced.ts';
import type { AnyIndex, ReadResources, WriteResources } from '../store/resources.ts';
import { ResourceStore } from '../store/store.ts';

/** Which cluster to connect to, and what to read there. */
export type ConnectOptions = Pick<
  KubernetesOptions,
  'kinds' | 'namespace' | 'indexes' | 'clock' | 'random'
> & {
  /** The setting KUBECONFIG; empty in a pod. */
  readonly kubeconfig: string;
  /** The environment variables of the process, in which Kubernetes gives a pod the address of its API server. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Aborts all writes when it is lost. */
  readonly fence: Fence;
  /** The time of day. */
  readonly now: () => Date;
  readonly telemetry: SourceTelemetry & {
    readonly metrics: { readonly record: Recorder<typeof restClientMetrics> };
  };
};

/** A cluster as a source, with transports for requests about anything else. */
export type ConnectedKubernetes = Kubernetes & {
  /** For objects that are not stored, such as events; it is closed with the cluster. */
  readonly transport: KubeTransport;
  /** For the Lease: its connection of its own never waits for other requests. */
  readonly leaseTransport: Pick<KubeTransport, 'send'>;
  /** For what users' objects refer to, of which there may be much: nothing else waits for it. */
  readonly referencedTransport: Pick<KubeTransport, 'send'>;
};

/** Finds a cluster and opens it; nothing is sent before it is started. Fails with SettingError. */
export async function connectKubernetes(options: ConnectOptions): Promise<ConnectedKubernetes> {
  const { clock, now, telemetry } = options;
  const configSource = await restConfigSource(options);
  const transportOptions = { configSource, clock, now, record: telemetry.metrics.record };
  const transport = openTransport(transportOptions);
  const leaseTransport = openTransport({ ...transportOptions, maxConnections: 1 });
  const referencedTransport = openTransport({ ...transportOptions, maxConnections: REFERENCE_READS });
  const reportFailure = (error: unknown) =>
    telemetry.log.error('unexpected error in the cluster source', { error });
  const cluster = openKubernetes({ ...options, transport, reportFailure });
  const close = async () => {
    await cluster.close();
    await Promise.all([transport, leaseTransport, referencedTransport].map(each => each.close()));
  };
  return { ...cluster, transport, leaseTransport, referencedTransport, close };
}

/** How a cluster is opened. */
export type KubernetesOptions = {
  /** To the cluster's API server; the caller closes it, after this. */
  readonly transport: KubeTransport;
  /** Aborts all writes when it is lost; without it, writes are always allowed. */
  readonly fence?: Fence;
  readonly kinds: readonly ResourceKind[];
  /** The namespace of Pods and of the ConfigMap `mesh-trust`, which are read in no other. */
  readonly namespace?: string;
  readonly indexes: readonly AnyIndex[];
  readonly clock: Clock;
  /** At least 0, less than 1. */
  readonly random: () => number;
  readonly telemetry: SourceTelemetry;
  /** Called with each error that a listener or an index throws. */
  readonly reportFailure: (failure: unknown) => void;
  readonly timing?: Partial<Timing>;
};

/** A cluster as a source of resources. */
export type Kubernetes = {
  readonly read: ReadResources;
  readonly write: WriteResources;
  /** Begins to list and watch; until then the store is empty. */
  readonly start: () => void;
  /** Stops reading; resolves when nothing of it is running. */
  readonly close: () => Promise<void>;
};

/** Opens a cluster and keeps its objects of the given kinds in memory. */
export function openKubernetes(options: KubernetesOptions): Kubernetes {
  const { indexes, transport, fence, clock, random, reportFailure } = options;
  const store = new ResourceStore(indexes, reportFailure);
  const timing = { ...DEFAULT_TIMING, ...options.timing };
  const { updates, start, close } = createSource({ ...options, store, timing });
  const fencing = fence ? { fence } : {};
  const write = createWriter({ transport, ...fencing, clock, random, read: store, updates });
  return { read: store, write, start, close };
}
