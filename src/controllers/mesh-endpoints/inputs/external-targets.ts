import { isIP } from 'node:net';
import type { Clock } from '../../../api/clock.ts';
import { FairLimit } from '../../../api/fair-limit.ts';
import { isEqual } from '../../../api/json.ts';
import { refOf } from '../../../api/key.ts';
import type { Key } from '../../../api/key.ts';
import type { Why } from '../../../api/problem.ts';
import { MAX_HOSTS_OF_NAMESPACE, MAX_LOOKUPS } from '../../../api/shares.ts';
import type { AddressGuard } from '../../../traffic/address-guard.ts';
import { createLookup } from './lookup.ts';
import type { Answer, Lookup } from './lookup.ts';
import { NamespaceHosts } from './namespace-hosts.ts';

/** What is known of the host of an externalTarget. */
export type Resolution =
  | {
      readonly is: 'resolved';
      /** Sorted; at most 16. */
      readonly addresses: readonly string[];
      /** Why they may be out of date: the last lookup failed. */
      readonly problem?: Why;
    }
  /** No lookup has succeeded yet. */
  | { readonly is: 'unresolved'; readonly problem: Why }
  /** Traffic may not be sent to the host, or to one of its addresses. */
  | { readonly is: 'refused'; readonly problem: Why };

/** Resolves the hosts of externalTargets, and again when their answers expire. */
export interface ExternalTargets {
  /** Replaces the hosts of a MeshEndpoints, with the addresses that were used last: they count until a lookup succeeds. */
  set(object: Key, hosts: ReadonlyMap<string, readonly string[]>): void;
  /** Of a host of an object; undefined until its first lookup has ended. */
  of(object: Key, host: string): Resolution | undefined;
  /** Calls a listener with each MeshEndpoints of a host when the resolution changes; returns the function that unsubscribes it. */
  subscribe(listener: (object: Key) => void): () => void;
  /** Ends all lookups. */
  close(): void;
}

type ResolverDeps = {
  readonly lookup: Lookup;
  readonly guard: Pick<AddressGuard, 'targetProblem'>;
  readonly clock: Clock;
};

/** An answer is used for its TTL, but neither shorter nor longer than this. */
const [MIN_TTL_MS, MAX_TTL_MS] = [5000, 3_600_000];

/** After a failed lookup the next one is as much later, doubled with each failure. */
const [MIN_RETRY_MS, MAX_RETRY_MS] = [5000, 60_000];

const MAX_ADDRESSES = 16;

/** A server that does not answer is queried again once. */
const LOOKUP = { timeoutMs: 2000, tries: 2 } as const;

/** Resolves externalTargets with the DNS servers of the system. */
export function openExternalTargets(deps: Omit<ResolverDeps, 'lookup'>): ExternalTargets {
  return createResolver({ ...deps, lookup: createLookup(LOOKUP) });
}

/** Creates the resolver of externalTargets. Each host is looked up once for all objects, and namespaces take turns. */
export function createResolver(deps: ResolverDeps): ExternalTargets {
  return new HostResolver(deps);
}

/** A host that is within the share of at least one namespace. */
type Host = {
  readonly name: string;
  readonly namespaces: Set<string>;
  resolution: Resolution | undefined;
  failures: number;
  /** Whether it waits for its lookup. */
  isDue: boolean;
  cancelTimer: () => void;
};

class HostResolver implements ExternalTargets {
  readonly #deps: ResolverDeps;
  readonly #hosts = new Map<string, Host>();
  readonly #namespaces = new Map<string, NamespaceHosts>();
  readonly #listeners = new Set<(object: Key) => void>();
  readonly #lookups = new FairLimit(MAX_LOOKUPS);
  #isClosed = false;

  constructor(deps: ResolverDeps) {
    this.#deps = deps;
  }

  set(object: Key, given: ReadonlyMap<string, readonly string[]>): void {
    const { namespace } = refOf(object);
    const used = this.#namespaces.get(namespace);
    // As in most namespaces.
    if (!used && given.size === 0) return;
    const hosts = used ?? new NamespaceHosts();
    const names = [...given].filter(([host]) => isIP(host) === 0);
    const own = new Map(names.map(([host, last]) => [host.toLowerCase(), last]));
    const { added, removed } = hosts.set(object, own);
    if (hosts.isEmpty) this.#namespaces.delete(namespace);
    else this.#namespaces.set(namespace, hosts);
    for (const name of removed) this.#release(name, namespace);
    for (const name of added) this.#use(name, namespace);
    const known = [...added, ...own.keys()].filter(name => this.#useLast(name, hosts));
    const others = [
      ...[...added, ...removed].flatMap(name => hosts.objectsOf(name)),
      ...known.flatMap(name => this.#objectsOf(name)),
    ];
    for (const other of new Set(others)) if (other !== object) this.#notify(other);
  }

  of(object: Key, host: string): Resolution | undefined {
    const name = host.toLowerCase();
    if (isIP(name) !== 0) return this.#guarded(name, [name]);
    const hosts = this.#namespaces.get(refOf(object).namespace);
    if (hosts?.has(name) && !hosts.isWithin(name)) return beyondShare(name);
    return this.#hosts.get(name)?.resolution;
  }

  subscribe(listener: (object: Key) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): void {
    this.#isClosed = true;
    for (const host of this.#hosts.values()) host.cancelTimer();
    this.#lookups.clear();
    this.#deps.lookup.close();
  }

  #use(name: string, namespace: string): void {
    const shared = this.#hosts.get(name);
    if (shared) {
      shared.namespaces.add(namespace);
      if (shared.isDue) this.#wait(shared, namespace);
      return;
    }
    const host: Host = {
      name,
      namespaces: new Set([namespace]),
      resolution: undefined,
      failures: 0,
      isDue: false,
      cancelTimer: () => {},
    };
    this.#hosts.set(name, host);
    this.#enqueue(host);
  }

  /** Until a lookup succeeds, the addresses that were used last count, whichever object of the host has them. */
  #useLast(name: string, hosts: NamespaceHosts): boolean {
    const host = this.#hosts.get(name);
    const last = hosts.lastOf(name);
    if (!host || !hosts.isWithin(name) || last.length === 0) return false;
    const before = host.resolution;
    if (before && before.is !== 'unresolved') return false;
    const found = this.#guarded(name, last);
    host.resolution =
      found.is === 'resolved' ? { ...found, ...(before && { problem: before.problem }) } : found;
    return true;
  }

  #release(name: string, namespace: string): void {
    const host = this.#hosts.get(name);
    if (!host?.namespaces.delete(namespace) || host.namespaces.size > 0) return;
    host.cancelTimer();
    host.isDue = false;
    this.#hosts.delete(name);
  }

  #enqueue(host: Host): void {
    host.isDue = true;
    for (const namespace of host.namespaces) this.#wait(host, namespace);
  }

  /** Each of its namespaces waits for its own turn; the first one looks the host up for all. */
  #wait(host: Host, namespace: string): void {
    this.#lookups.run([namespace], async () => {
      if (!host.isDue || this.#isClosed) return;
      host.isDue = false;
      this.#end(host, await this.#deps.lookup.find(host.name));
    });
  }

  #end(host: Host, answer: Answer): void {
    if (this.#isClosed || this.#hosts.get(host.name) !== host) return;
    const before = host.resolution;
    host.resolution = this.#resolutionOf(host, answer);
    host.failures = answer.is === 'found' ? 0 : host.failures + 1;
    const delayMs = answer.is === 'found' ? ttlOf(answer.ttlMs) : retryMsAfter(host.failures);
    host.cancelTimer = this.#deps.clock.after(delayMs, () => this.#enqueue(host));
    if (isEqual(before, host.resolution)) return;
    for (const object of this.#objectsOf(host.name)) this.#notify(object);
  }

  /** While lookups fail, the last addresses stay. */
  #resolutionOf({ name, resolution: before }: Host, answer: Answer): Resolution {
    if (answer.is === 'found') return this.#guarded(name, answer.addresses);
    const problem = { text: `${name}: ${answer.why}`, fix: 'correct the name, or its records in DNS' };
    if (before?.is === 'refused') return before;
    return before?.is === 'resolved' ? { ...before, problem } : { is: 'unresolved', problem };
  }

  #guarded(name: string, addresses: readonly string[]): Resolution {
    const problem = this.#deps.guard.targetProblem(name, addresses);
    if (problem) return { is: 'refused', problem };
    return { is: 'resolved', addresses: addresses.slice(0, MAX_ADDRESSES) };
  }

  /** In all namespaces. */
  #objectsOf(name: string): readonly Key[] {
    const namespaces = this.#hosts.get(name)?.namespaces ?? [];
    return [...namespaces].flatMap(namespace => this.#namespaces.get(namespace)?.objectsOf(name) ?? []);
  }

  #notify(object: Key): void {
    for (const listener of [...this.#listeners]) listener(object);
  }
}

function beyondShare(name: string): Resolution {
  const text = `${name} is not among the ${MAX_HOSTS_OF_NAMESPACE} hosts that a namespace may have`;
  return { is: 'refused', problem: { text, fix: 'remove others, or use another namespace' } };
}

function ttlOf(ttlMs: number): number {
  return Math.min(Math.max(ttlMs, MIN_TTL_MS), MAX_TTL_MS);
}

function retryMsAfter(failures: number): number {
  return Math.min(MIN_RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS);
}
