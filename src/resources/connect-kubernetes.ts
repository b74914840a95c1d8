import type { Clock } from '../api/clock.ts';
import type { ResourceKind } from '../api/key.ts';
import type { restClientMetrics } from '../telemetry/metrics.ts';
import type { Recorder } from '../telemetry/recorder.ts';
import { openKubernetes } from './kubernetes.ts';
import type { Kubernetes } from './kubernetes.ts';
import { clusterAccess } from './kubernetes/auth/config-source.ts';
import { openTransport } from './kubernetes/transport/open-transport.ts';
import type { SourceTelemetry } from './kubernetes/reflector/observer.ts';
import type { KubeTransport } from './kubernetes/transport/transport.ts';
import type { Fence } from './kubernetes/write/writer.ts';
import type { AnyIndex } from './resources.ts';

/** Which cluster, and what of it is read. */
export type ConnectWish = {
  /** The setting KUBECONFIG; empty inside of a cluster. */
  readonly kubeconfig: string;
  /** Where Kubernetes says how it is reached from inside. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly kinds: readonly ResourceKind[];
  readonly indexes: readonly AnyIndex[];
  /** What must hold for anything to be written. */
  readonly fence: Fence;
  readonly clock: Clock;
  readonly random: () => number;
  /** The time of day. */
  readonly now: () => Date;
  readonly telemetry: ConnectTelemetry;
};

/** Where a process tells what it asks and reads. */
type ConnectTelemetry = SourceTelemetry & {
  readonly metrics: { readonly record: Recorder<typeof restClientMetrics> };
};

type Asking = Pick<KubeTransport, 'ask'>;

/** A cluster as a source, and the ways to speak to it about anything else. */
export type ConnectedKubernetes = Kubernetes & {
  /** For what is no write of ours to anything that is declared, such as events. */
  readonly speaking: Asking;
  /** On a connection of its own, so that it waits for nothing else: for the Lease. */
  readonly urgent: Asking;
};

/** Finds a cluster and opens it; nothing is sent before it is started. Fails with SettingError. */
export async function connectKubernetes(wish: ConnectWish): Promise<ConnectedKubernetes> {
  const { kubeconfig, environment, kinds, indexes, fence, clock, random, now, telemetry } = wish;
  const access = await clusterAccess({ kubeconfig, environment, clock });
  const options = { access, clock, now, record: telemetry.metrics.record };
  const [transport, urgent] = [openTransport(options), openTransport({ ...options, maxConnections: 1 })];
  const reportFailure = (error: unknown) =>
    telemetry.log.error('unexpected error in the cluster source', { error });
  const parts = { transport, fence, kinds, indexes, clock, random, telemetry, reportFailure };
  const cluster = openKubernetes(parts);
  const close = async () => {
    await cluster.close();
    await Promise.all([transport.close(), urgent.close()]);
  };
  return { ...cluster, speaking: transport, urgent, close };
}
