import type { Clock } from '../../api/clock.ts';
import type { ResourceKind } from '../../api/key.ts';
import type { ResourceStore } from '../../store/store.ts';
import { createStoreUpdates } from './store-updates.ts';
import type { PutResponses, Undecodable } from './store-updates.ts';
import { Reflector } from './reflector.ts';
import { KindObserver } from './observer.ts';
import type { SourceTelemetry } from './observer.ts';
import type { Timing } from './state.ts';
import { collectionOf } from '../served-kinds.ts';
import type { KubeTransport } from '../transport/transport.ts';

export type SourceDeps = {
  readonly transport: KubeTransport;
  readonly kinds: readonly ResourceKind[];
  readonly store: ResourceStore;
  readonly clock: Clock;
  /** At least 0, less than 1. */
  readonly random: () => number;
  readonly timing: Timing;
  /** The namespace of kinds that are read in one namespace. */
  readonly namespace?: string;
  readonly telemetry: SourceTelemetry;
  readonly reportFailure: (failure: unknown) => void;
};

/** Keeps a store in sync with an API server. */
export type Source = {
  readonly updates: PutResponses;
  readonly start: () => void;
  readonly close: () => Promise<void>;
};

/** One reflector for each kind; synced when each kind has been listed or is known not to be served. */
export function createSource(deps: SourceDeps): Source {
  const { store, telemetry, clock, reportFailure } = deps;
  const kinds = [...new Set(deps.kinds)];
  const { log, metrics, activities } = telemetry;
  const updates = createStoreUpdates(kinds, { store, reportUndecodable: logUndecodable(log) });
  const unsynced = new Set(kinds);
  const markIfSynced = () => {
    if (unsynced.size === 0) store.markSynced();
  };
  const observers = kinds.map(kind => new KindObserver(kind, telemetry, clock));
  const reflectors = kinds.map((kind, index) => {
    const moved = (...move: Parameters<KindObserver['moved']>) => observers[index]?.moved(...move);
    return new Reflector({
      ...deps,
      collection: collectionOf(kind, deps.namespace),
      updates: updates.of(kind),
      observer: { moved, failed: reportFailure },
      onSynced: () => {
        unsynced.delete(kind);
        markIfSynced();
      },
    });
  });
  const disposers = [
    activities.add('source kubernetes', () => observers.map(observer => observer.activity())),
    metrics.readGauge('sourceObjects', () => readings(kinds, kind => store.list(kind).length)),
    metrics.readGauge('sourceUndecodable', () => readings(kinds, kind => updates.of(kind).undecodable)),
  ];
  return {
    updates,
    start: () => {
      markIfSynced();
      for (const reflector of reflectors) reflector.start();
    },
    close: async () => {
      await Promise.all(reflectors.map(reflector => reflector.close()));
      for (const dispose of disposers) dispose();
    },
  };
}

function readings(kinds: readonly ResourceKind[], read: (kind: ResourceKind) => number) {
  return kinds.map(kind => ({ labels: { kind }, value: read(kind) }));
}

function logUndecodable(log: SourceTelemetry['log']): (object: Undecodable) => void {
  return ({ ref: { kind, namespace, name }, version, faults }) =>
    log.warn('cannot decode an object; its last valid version is kept', {
      kind,
      namespace,
      name,
      resourceVersion: version,
      faults,
    });
}
