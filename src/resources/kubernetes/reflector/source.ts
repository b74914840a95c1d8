import type { Clock } from '../../../api/clock.ts';
import type { ResourceKind } from '../../../api/key.ts';
import type { ResourceStore } from '../../store.ts';
import { createArrivals } from './store-updates.ts';
import type { TakeAnswers, Undecodable } from './store-updates.ts';
import { Reflector } from './reflector.ts';
import { KindObserver } from './observer.ts';
import type { SourceTelemetry } from './observer.ts';
import type { Patience } from './state.ts';
import type { KubeTransport } from '../transport/transport.ts';

/** What a source reads with. */
export type SourceDeps = {
  readonly transport: KubeTransport;
  readonly kinds: readonly ResourceKind[];
  readonly store: ResourceStore;
  readonly clock: Clock;
  /** At least 0, less than 1. */
  readonly random: () => number;
  readonly patience: Patience;
  readonly telemetry: SourceTelemetry;
  readonly reportFailure: (failure: unknown) => void;
};

/** Fills a store from an API server, and keeps it as the server is. */
export type Source = {
  readonly arrivals: TakeAnswers;
  readonly start: () => void;
  readonly close: () => Promise<void>;
};

/** A source for kinds, which is synced when each of them was read whole or is known not to be served. */
export function createSource(deps: SourceDeps): Source {
  const { store, telemetry, clock, reportFailure } = deps;
  const kinds = [...new Set(deps.kinds)];
  const { log, metrics, activities } = telemetry;
  const arrivals = createArrivals(kinds, { store, reportUndecodable: undecodableTo(log) });
  const unread = new Set(kinds);
  const sayIfRead = () => {
    if (unread.size === 0) store.markSynced();
  };
  const observers = kinds.map(kind => new KindObserver(kind, telemetry, clock));
  const reflectors = kinds.map((kind, at) => {
    const moved = (...move: Parameters<KindObserver['moved']>) => observers[at]?.moved(...move);
    return new Reflector({
      ...deps,
      kind,
      arrivals: arrivals.of(kind),
      observer: { moved, broke: reportFailure },
      sayRead: () => {
        unread.delete(kind);
        sayIfRead();
      },
    });
  });
  const ends = [
    activities.add('source kubernetes', () => observers.map(observer => observer.activity())),
    metrics.readGauge('sourceObjects', () => readings(kinds, kind => store.list(kind).length)),
    metrics.readGauge('sourceUndecodable', () => readings(kinds, kind => arrivals.of(kind).undecodable)),
  ];
  return {
    arrivals,
    start: () => {
      sayIfRead();
      for (const reflector of reflectors) reflector.start();
    },
    close: async () => {
      await Promise.all(reflectors.map(reflector => reflector.close()));
      for (const end of ends) end();
    },
  };
}

function readings(kinds: readonly ResourceKind[], read: (kind: ResourceKind) => number) {
  return kinds.map(kind => ({ labels: { kind }, value: read(kind) }));
}

function undecodableTo(log: SourceTelemetry['log']): (object: Undecodable) => void {
  return ({ ref: { kind, namespace, name }, version, faults }) =>
    log.warn('an object cannot be read; what was known of it holds', {
      ...{ kind, namespace, name },
      ...{ resourceVersion: version, faults },
    });
}
