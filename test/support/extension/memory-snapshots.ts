import type { Key } from '../../../src/api/key.ts';
import type { Watcher } from '../../../src/store/derived.ts';
import type { ClusterSnapshot, SnapshotCache } from '../../../src/extension/resolution-cache.ts';
import type { EnvoyEndpoint, EnvoyLocality } from '../../../src/traffic/endpoints/load-assignment.ts';
import type { UnusedBackend } from '../../../src/traffic/unused.ts';

/** An endpoint at 100.64.0.1 with this port by default. */
function assignedEndpoint(port: number, rest: Partial<Omit<EnvoyEndpoint, 'port'>> = {}): EnvoyEndpoint {
  return {
    address: '100.64.0.1',
    port,
    weight: 1,
    health: 'HEALTHY',
    healthCheckHost: 'web-1.example.ts.net',
    isHealthCheckDisabled: false,
    ...rest,
  };
}

/** A locality of the first backend with endpoints at these ports. */
export function locality(ports: readonly number[], rest: Partial<EnvoyLocality> = {}): EnvoyLocality {
  return {
    backend: 0,
    weight: 1,
    priority: 0,
    endpoints: ports.map(port => assignedEndpoint(port)),
    ...rest,
  };
}

/** A snapshot with these localities. */
export function clusterSnapshot(
  cluster: string,
  localities: readonly EnvoyLocality[],
  unused: readonly UnusedBackend[] = [],
): ClusterSnapshot {
  const objects = localities.map(({ backend }): [number, Key] => [backend, objectOf(backend)]);
  return { assignment: { cluster, localities }, objects: new Map(objects), unused };
}

/** The MeshEndpoints of a backend. */
export function objectOf(backend: number): Key {
  return `MeshEndpoints/default/web-${backend}`;
}

/** Snapshots that a test sets. */
export class MemorySnapshots implements SnapshotCache {
  readonly #snapshots = new Map<string, ClusterSnapshot>();
  readonly #watchers = new Map<string, Set<Watcher>>();
  /** Thrown by reads while it is set. */
  failure: Error | undefined;
  /** How many snapshots were read. */
  reads = 0;

  snapshot(cluster: string, gateway: string): ClusterSnapshot | undefined {
    this.reads++;
    if (this.failure) throw this.failure;
    return this.#snapshots.get(`${gateway} ${cluster}`);
  }

  watch(cluster: string, gateway: string, watcher: Watcher): void {
    const key = `${gateway} ${cluster}`;
    const watchers = this.#watchers.get(key) ?? new Set();
    this.#watchers.set(key, watchers.add(watcher));
  }

  unwatch(cluster: string, gateway: string, watcher: Watcher): void {
    const key = `${gateway} ${cluster}`;
    const watchers = this.#watchers.get(key);
    watchers?.delete(watcher);
    if (watchers?.size === 0) this.#watchers.delete(key);
  }

  /** How many clusters are watched. */
  get watched(): number {
    return this.#watchers.size;
  }

  /** Sets ports of the first backend, a whole snapshot, or none. */
  set(cluster: string, gateway: string, to: readonly number[] | ClusterSnapshot | undefined): void {
    const key = `${gateway} ${cluster}`;
    if (to === undefined) this.#snapshots.delete(key);
    else if ('assignment' in to) this.#snapshots.set(key, to);
    else this.#snapshots.set(key, clusterSnapshot(cluster, to.length > 0 ? [locality(to)] : []));
    this.invalidate(cluster, gateway);
  }

  /** Notifies the watchers. */
  invalidate(cluster: string, gateway: string): void {
    for (const watcher of this.#watchers.get(`${gateway} ${cluster}`) ?? []) watcher.invalidated();
  }
}
