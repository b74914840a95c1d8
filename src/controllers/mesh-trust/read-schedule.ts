import { TRUST_READ_BYTES, TRUST_READS } from '../../api/shares.ts';
import { inTurns } from '../../api/turns.ts';
import type { CaRef, Trust, TrustedCa } from '../../api/trust.ts';

/** The references to keys of one ConfigMap. */
export type CaRefs = readonly [CaRef, ...CaRef[]];

/** One ConfigMap that cannot be read delays no other, as a backoff of all of them would. */
export const RETRY_MS = 10_000;

/** When each ConfigMap is read. */
export class ReadSchedule {
  readonly #maxAgeMs: number;
  /** Without those that have never been read. */
  readonly #dueAt = new Map<string, number>();

  constructor(maxAgeMs: number) {
    this.#maxAgeMs = maxAgeMs;
  }

  /** The ConfigMaps that are due, not too many at once: of each namespace those first that have waited longest, in turns. */
  due(refs: readonly CaRef[], now: number): readonly CaRefs[] {
    const configMaps = byConfigMap(refs);
    for (const key of this.#dueAt.keys()) if (!configMaps.has(key)) this.#dueAt.delete(key);
    const dueAt = ([key]: readonly [string, CaRefs]) => this.#dueAt.get(key) ?? -Infinity;
    const due = [...configMaps].filter(each => dueAt(each) <= now);
    // Not a difference, which is NaN for two that have never been read.
    due.sort((one, other) => (dueAt(one) < dueAt(other) ? -1 : Number(dueAt(one) > dueAt(other))));
    return inTurns(
      due.map(([, group]) => group),
      ([{ namespace }]) => namespace,
    ).slice(0, TRUST_READS);
  }

  hasRead(refs: CaRefs, now: number): void {
    this.#dueAt.set(keyOf(refs[0]), now + this.#maxAgeMs);
  }

  hasFailed(refs: CaRefs, now: number): void {
    this.#dueAt.set(keyOf(refs[0]), now + RETRY_MS);
  }
}

/** What reads of one second cost each namespace. */
export class ReadBudget {
  readonly #spent = new Map<string, number>();
  /** Certificates that have been parsed before. */
  readonly #known = new Set<string>();

  constructor(published: Trust) {
    for (const ca of published.values()) if (ca.is === 'found') this.#known.add(ca.pem);
  }

  hasRoom(namespace: string): boolean {
    return (this.#spent.get(namespace) ?? 0) < TRUST_READ_BYTES;
  }

  /** Counts the text of a key, unless its certificates are known. */
  countKey(namespace: string, text: string | undefined, ca: TrustedCa): void {
    if (ca.is === 'found' && this.#known.has(ca.pem)) return;
    if (ca.is === 'found') this.#known.add(ca.pem);
    this.#spend(namespace, text?.length ?? 0);
  }

  countConfigMap(namespace: string, data: Readonly<Record<string, string>>): void {
    const bytes = Object.values(data).reduce((sum, text) => sum + text.length, 0);
    this.#spend(namespace, bytes / 16);
  }

  #spend(namespace: string, bytes: number): void {
    this.#spent.set(namespace, (this.#spent.get(namespace) ?? 0) + bytes);
  }
}

function keyOf({ namespace, name }: CaRef): string {
  return `${namespace}/${name}`;
}

function byConfigMap(refs: readonly CaRef[]): ReadonlyMap<string, CaRefs> {
  const groups = new Map<string, [CaRef, ...CaRef[]]>();
  for (const ref of refs) {
    const group = groups.get(keyOf(ref));
    if (group) group.push(ref);
    else groups.set(keyOf(ref), [ref]);
  }
  return groups;
}
