import type { Clock } from '../api/clock.ts';
import type { ResourceKind } from '../api/key.ts';
import type { Fence } from './kubernetes/write/writer.ts';
import { PATIENCE } from './kubernetes/reflector/state.ts';
import type { Patience } from './kubernetes/reflector/state.ts';
import { createSource } from './kubernetes/reflector/source.ts';
import type { SourceTelemetry } from './kubernetes/reflector/observer.ts';
import type { KubeTransport } from './kubernetes/transport/transport.ts';
import { writesTo } from './kubernetes/write/writer.ts';
import { outside } from './outside.ts';
import type { AnyIndex, ReadResources, WriteResources } from './resources.ts';
import { ResourceStore } from './store.ts';

/** What a cluster is opened with. */
export type KubernetesSettings = {
  /** To the cluster's API server; whoever made it closes it, after this. */
  readonly transport: KubeTransport;
  /** What must hold for anything to be written. */
  readonly fence?: Fence;
  readonly kinds: readonly ResourceKind[];
  readonly indexes: readonly AnyIndex[];
  readonly clock: Clock;
  /** At least 0, less than 1. */
  readonly random: () => number;
  readonly telemetry: SourceTelemetry;
  /** Told of what a listener or an index threw. */
  readonly reportFailure: (failure: unknown) => void;
  readonly patience?: Partial<Patience>;
};

/** A cluster as a source of resources. */
export type Kubernetes = {
  readonly read: ReadResources;
  readonly write: WriteResources;
  /** Begins to read and to follow what changes; until then nothing is known. */
  readonly start: () => void;
  /** Ends reading; fulfilled when nothing of it is under way. */
  readonly close: () => Promise<void>;
};

/** Opens a cluster, whose objects of the kinds that are read are in memory from when they were first read. */
export function openKubernetes(settings: KubernetesSettings): Kubernetes {
  const { indexes, transport, fence, clock, random } = settings;
  const reportFailure = outside(settings.reportFailure);
  const store = new ResourceStore(indexes, reportFailure);
  const patience = { ...PATIENCE, ...settings.patience };
  const { arrivals, start, close } = createSource({ ...settings, store, patience, reportFailure });
  const fencing = fence ? { fence } : {};
  const write = writesTo({ transport, ...fencing, clock, random, read: store, arrivals });
  return { read: store, write, start, close };
}
