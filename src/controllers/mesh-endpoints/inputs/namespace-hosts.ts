import type { Key } from '../../../api/key.ts';
import { MAX_HOSTS_OF_NAMESPACE } from '../../../api/shares.ts';

type Host = { readonly objects: Set<Key>; last: readonly string[] };

/** Which hosts of a namespace are within its share. */
export type Change = { readonly added: readonly string[]; readonly removed: readonly string[] };

/**
 * The hosts of a namespace, of which its share is resolved: first those that had addresses when they were added, so that a
 * restart displaces none that has traffic, and then the others, in the order in which they were added.
 */
export class NamespaceHosts {
  readonly #hosts = new Map<string, Host>();
  readonly #hostsOf = new Map<Key, ReadonlySet<string>>();
  #within: ReadonlySet<string> = new Set();

  /** Replaces the hosts of an object, with the addresses that were used last. */
  set(object: Key, hosts: ReadonlyMap<string, readonly string[]>): Change {
    const before = this.#hostsOf.get(object) ?? new Set<string>();
    const added = [...hosts.keys()].filter(name => !before.has(name));
    const removed = without(before, hosts);
    for (const name of removed) this.#remove(name, object);
    for (const name of added) this.#add(name, object, hosts.get(name) ?? []);
    if (hosts.size > 0) this.#hostsOf.set(object, new Set(hosts.keys()));
    else this.#hostsOf.delete(object);
    return added.length + removed.length === 0 ? NO_CHANGE : this.#update();
  }

  get isEmpty(): boolean {
    return this.#hosts.size === 0;
  }

  isWithin(name: string): boolean {
    return this.#within.has(name);
  }

  has(name: string): boolean {
    return this.#hosts.has(name);
  }

  lastOf(name: string): readonly string[] {
    return this.#hosts.get(name)?.last ?? [];
  }

  objectsOf(name: string): readonly Key[] {
    return [...(this.#hosts.get(name)?.objects ?? [])];
  }

  #add(name: string, object: Key, last: readonly string[]): void {
    const host = this.#hosts.get(name) ?? { objects: new Set(), last };
    this.#hosts.set(name, host);
    host.objects.add(object);
    if (host.last.length === 0) host.last = last;
  }

  #remove(name: string, object: Key): void {
    const host = this.#hosts.get(name);
    host?.objects.delete(object);
    if (host?.objects.size === 0) this.#hosts.delete(name);
  }

  #update(): Change {
    const before = this.#within;
    const all = [...this.#hosts];
    const ranked = [
      ...all.filter(([, { last }]) => last.length > 0),
      ...all.filter(([, { last }]) => last.length === 0),
    ];
    const within = new Set(ranked.slice(0, MAX_HOSTS_OF_NAMESPACE).map(([name]) => name));
    this.#within = within;
    return { added: without(within, before), removed: without(before, within) };
  }
}

const NO_CHANGE: Change = { added: [], removed: [] };

function without(
  names: ReadonlySet<string>,
  others: { readonly has: (name: string) => boolean },
): readonly string[] {
  return [...names].filter(name => !others.has(name));
}
