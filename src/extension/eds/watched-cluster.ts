import type { Clock } from '../../api/clock.ts';
import type { UnusedBackend } from '../../traffic/unused.ts';
import type { Watcher } from '../../store/derived.ts';
import type { ClusterSnapshot, SnapshotCache } from '../resolution-cache.ts';
import { drainingAfter, withDraining } from './draining.ts';
import type { DrainingEndpoint } from './draining.ts';
import { encodeResource } from './envoy-endpoints.ts';
import type { EncodedResource } from './envoy-endpoints.ts';

/** The subscription of one stream to one cluster. */
export type Subscription = {
  readonly cluster: WatchedCluster;
  readonly stream: { enqueue(subscription: Subscription): void };
  /** The version that was sent last, or that the Envoy had at first; undefined if it has none. */
  sentVersion: string | undefined;
  /** The Envoy subscribed again, so that the cluster is sent even if it did not change. */
  isRequestedAgain: boolean;
};

/** Stands for the version of a resource that does not exist. */
export const REMOVED = '';

/** What all watched clusters share. */
export type WatchedClusterDeps = {
  readonly snapshots: SnapshotCache;
  readonly clock: Clock;
  readonly drainMs: number;
  readonly enqueue: (cluster: WatchedCluster) => void;
  readonly reportError: (cluster: WatchedCluster, error: unknown) => void;
};

/** A cluster to which streams of one Gateway subscribe: it is resolved and encoded once for all of them. */
export class WatchedCluster implements Watcher {
  readonly name: string;
  readonly gateway: string;
  readonly subscriptions = new Set<Subscription>();
  /** When the last sent resource became stale. */
  changedAt: number;
  readonly #deps: WatchedClusterDeps;
  #isStale = true;
  #snapshot: ClusterSnapshot | undefined;
  #resource: EncodedResource | undefined;
  #draining: readonly DrainingEndpoint[] = [];
  #cancelDraining: (() => void) | undefined;

  constructor(name: string, gateway: string, deps: WatchedClusterDeps) {
    this.name = name;
    this.gateway = gateway;
    this.changedAt = deps.clock.now();
    this.#deps = deps;
  }

  start(): void {
    this.#deps.snapshots.watch(this.name, this.gateway, this);
  }

  stop(): void {
    this.#deps.snapshots.unwatch(this.name, this.gateway, this);
    this.#cancelDraining?.();
  }

  invalidated(): void {
    if (!this.#isStale) this.changedAt = this.#deps.clock.now();
    this.#isStale = true;
    this.#deps.enqueue(this);
  }

  /** The current resource; undefined if the cluster has no mesh backend. */
  resource(): EncodedResource | undefined {
    if (this.#isStale) this.#refresh();
    return this.#resource;
  }

  /** Whether a subscription must be sent the current resource, which is resolved and encoded first if it is stale. */
  isOutdated({ sentVersion, isRequestedAgain }: Subscription): boolean {
    return isRequestedAgain || sentVersion !== (this.resource()?.version ?? REMOVED);
  }

  /** The backends without traffic in the last snapshot. */
  get unused(): readonly UnusedBackend[] | undefined {
    return this.#snapshot?.unused;
  }

  /** On an error the last resource is kept. */
  #refresh(): void {
    this.#isStale = false;
    try {
      const next = this.#deps.snapshots.snapshot(this.name, this.gateway);
      if (next && next === this.#snapshot && this.#draining.length === 0) return;
      this.#updateDraining(next);
      this.#resource = next && encodeResource(withDraining(next.assignment, this.#draining));
      this.#snapshot = next;
    } catch (error) {
      this.#deps.reportError(this, error);
    }
  }

  #updateDraining(next: ClusterSnapshot | undefined): void {
    const { clock, drainMs } = this.#deps;
    const [now, previous] = [clock.now(), this.#snapshot];
    this.#draining =
      previous && next ? drainingAfter({ previous, draining: this.#draining, next, now, drainMs }) : [];
    this.#cancelDraining?.();
    this.#cancelDraining = undefined;
    if (this.#draining.length === 0) return;
    const first = Math.min(...this.#draining.map(({ until }) => until));
    this.#cancelDraining = clock.after(first - now, () => this.invalidated());
  }
}
