import type { Key } from '../../../src/api/key.ts';
import type { SourcedAssignment, Assignments } from '../../../src/extension/eds/assigned.ts';
import type { Follower } from '../../../src/extension/dependency-cache.ts';
import type { EnvoyEndpoint, EnvoyLocality } from '../../../src/traffic/load-assignment.ts';
import type { UnusedBackend } from '../../../src/traffic/unused.ts';

/** An endpoint at 100.64.0.1 with this port, unless something else is said. */
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

/** What a cluster is assigned, of localities. */
export function assigned(
  cluster: string,
  localities: readonly EnvoyLocality[],
  unused: readonly UnusedBackend[] = [],
): SourcedAssignment {
  const objects = localities.map(({ backend }): [number, Key] => [backend, objectOf(backend)]);
  return { assignment: { cluster, localities }, objects: new Map(objects), unused };
}

/** The MeshEndpoints behind a backend. */
export function objectOf(backend: number): Key {
  return `MeshEndpoints/default/web-${backend}`;
}

/** Assignments that a test decides. */
export class World implements Assignments {
  readonly #known = new Map<string, SourcedAssignment>();
  readonly #followers = new Map<string, Set<Follower>>();
  /** What finding throws, while it is set. */
  failure: Error | undefined;
  /** How often something was looked for. */
  finds = 0;

  find(cluster: string, gateway: string): SourcedAssignment | undefined {
    this.finds++;
    if (this.failure) throw this.failure;
    return this.#known.get(`${gateway} ${cluster}`);
  }

  follow(cluster: string, gateway: string, follower: Follower): void {
    const place = `${gateway} ${cluster}`;
    const known = this.#followers.get(place) ?? new Set();
    this.#followers.set(place, known.add(follower));
  }

  unfollow(cluster: string, gateway: string, follower: Follower): void {
    const place = `${gateway} ${cluster}`;
    const known = this.#followers.get(place);
    known?.delete(follower);
    if (known?.size === 0) this.#followers.delete(place);
  }

  /** How many clusters someone follows. */
  get followed(): number {
    return this.#followers.size;
  }

  /** Assigns ports of the first backend, whole localities, or nothing. */
  set(cluster: string, gateway: string, what: readonly number[] | SourcedAssignment | undefined): void {
    const place = `${gateway} ${cluster}`;
    if (what === undefined) this.#known.delete(place);
    else if ('assignment' in what) this.#known.set(place, what);
    else this.#known.set(place, assigned(cluster, what.length > 0 ? [locality(what)] : []));
    this.touch(cluster, gateway);
  }

  /** Says that something may have changed. */
  touch(cluster: string, gateway: string): void {
    for (const follower of this.#followers.get(`${gateway} ${cluster}`) ?? []) follower.changed();
  }
}
