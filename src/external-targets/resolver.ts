import { isIP } from 'node:net';
import type { Clock } from '../api/clock.ts';
import { isEqual } from '../api/json.ts';
import type { Key } from '../api/key.ts';
import type { ExternalTargets, Resolution } from './external-targets.ts';
import type { AddressGuard } from '../traffic/address-guard.ts';
import type { Answer, Lookup } from './lookup.ts';

export type ResolverDeps = {
  readonly lookup: Lookup;
  readonly guard: Pick<AddressGuard, 'targetProblem'>;
  readonly clock: Clock;
};

/** An answer is used for its TTL, but neither shorter nor longer than this. */
const [MIN_TTL_MS, MAX_TTL_MS] = [5000, 3_600_000];

/** After a failed lookup the next one is as much later, doubled with each failure. */
const [MIN_RETRY_MS, MAX_RETRY_MS] = [5000, 60_000];

const [MAX_CONCURRENT, MAX_ADDRESSES] = [16, 16];

/** Creates the resolver of externalTargets. Each host is looked up once for all objects. */
export function createResolver(deps: ResolverDeps): ExternalTargets {
  return new HostResolver(deps);
}

type Host = {
  readonly name: string;
  readonly objects: Set<Key>;
  resolution: Resolution | undefined;
  failures: number;
  cancelTimer: () => void;
};

class HostResolver implements ExternalTargets {
  readonly #deps: ResolverDeps;
  readonly #hosts = new Map<string, Host>();
  readonly #hostsOf = new Map<Key, ReadonlySet<string>>();
  readonly #listeners = new Set<(object: Key) => void>();
  readonly #due = new Set<Host>();
  #running = 0;
  #isClosed = false;

  constructor(deps: ResolverDeps) {
    this.#deps = deps;
  }

  set(object: Key, hosts: ReadonlyMap<string, readonly string[]>): void {
    const names = new Map([...hosts].map(([host, last]) => [host.toLowerCase(), last]));
    const before = this.#hostsOf.get(object) ?? new Set<string>();
    for (const [name, last] of names) if (!before.has(name)) this.#use(name, object, last);
    for (const name of before) if (!names.has(name)) this.#release(name, object);
    if (names.size > 0) this.#hostsOf.set(object, new Set(names.keys()));
    else this.#hostsOf.delete(object);
  }

  of(host: string): Resolution | undefined {
    return this.#hosts.get(host.toLowerCase())?.resolution;
  }

  subscribe(listener: (object: Key) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): void {
    this.#isClosed = true;
    for (const host of this.#hosts.values()) host.cancelTimer();
    this.#due.clear();
    this.#deps.lookup.close();
  }

  #use(name: string, object: Key, last: readonly string[]): void {
    const shared = this.#hosts.get(name);
    if (shared) {
      shared.objects.add(object);
      return;
    }
    const host: Host = {
      name,
      objects: new Set([object]),
      resolution: undefined,
      failures: 0,
      cancelTimer: () => {},
    };
    this.#hosts.set(name, host);
    const known = isIP(name) === 0 ? last : [name];
    if (known.length > 0) host.resolution = this.#guarded(host, known);
    if (isIP(name) === 0) this.#enqueue(host);
  }

  #release(name: string, object: Key): void {
    const host = this.#hosts.get(name);
    if (!host?.objects.delete(object) || host.objects.size > 0) return;
    host.cancelTimer();
    this.#due.delete(host);
    this.#hosts.delete(name);
  }

  #enqueue(host: Host): void {
    this.#due.add(host);
    this.#startDue();
  }

  #startDue(): void {
    for (const host of this.#due) {
      if (this.#isClosed || this.#running === MAX_CONCURRENT) return;
      this.#due.delete(host);
      this.#running++;
      void this.#deps.lookup.find(host.name).then(answer => this.#end(host, answer));
    }
  }

  #end(host: Host, answer: Answer): void {
    this.#running--;
    if (this.#isClosed) return;
    this.#startDue();
    if (this.#hosts.get(host.name) !== host) return;
    const before = host.resolution;
    host.resolution = this.#resolutionOf(host, answer);
    host.failures = answer.is === 'found' ? 0 : host.failures + 1;
    const delayMs = answer.is === 'found' ? ttlOf(answer.ttlMs) : retryMsAfter(host.failures);
    host.cancelTimer = this.#deps.clock.after(delayMs, () => this.#enqueue(host));
    if (!isEqual(before, host.resolution)) this.#notify(host);
  }

  /** While lookups fail, the last addresses stay. */
  #resolutionOf(host: Host, answer: Answer): Resolution {
    if (answer.is === 'found') return this.#guarded(host, answer.addresses);
    const problem = `${host.name}: ${answer.why}`;
    const before = host.resolution;
    if (before?.is === 'refused') return before;
    return before?.is === 'resolved' ? { ...before, problem } : { is: 'unresolved', problem };
  }

  #guarded({ name }: Host, addresses: readonly string[]): Resolution {
    const problem = this.#deps.guard.targetProblem(name, addresses);
    if (problem !== undefined) return { is: 'refused', problem };
    return { is: 'resolved', addresses: addresses.slice(0, MAX_ADDRESSES) };
  }

  #notify({ objects }: Host): void {
    for (const object of [...objects]) for (const listener of [...this.#listeners]) listener(object);
  }
}

function ttlOf(ttlMs: number): number {
  return Math.min(Math.max(ttlMs, MIN_TTL_MS), MAX_TTL_MS);
}

function retryMsAfter(failures: number): number {
  return Math.min(MIN_RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS);
}
