import { isDeepStrictEqual } from 'node:util';
import type { Key } from '../../../../src/api/key.ts';
import type { CheckedEndpoint, HealthMonitor, Verdict } from '../../../../src/health/health.ts';

/** Verdicts on endpoints, as a test decides them; an endpoint begins with the verdict that was written. */
export class ScriptedHealth implements HealthMonitor {
  readonly checked = new Map<Key, ReadonlyMap<string, CheckedEndpoint>>();
  readonly #verdicts = new Map<string, Verdict>();
  readonly #listeners = new Set<(object: Key) => void>();

  set(object: Key, endpoints: ReadonlyMap<string, CheckedEndpoint>): void {
    const before = this.checked.get(object);
    this.checked.set(object, endpoints);
    for (const name of before?.keys() ?? []) {
      if (!endpoints.has(name)) this.#verdicts.delete(`${object} ${name}`);
    }
    for (const [name, { check, written }] of endpoints) {
      const isSame = isDeepStrictEqual(before?.get(name)?.check.target, check.target);
      const undecided = { is: 'undecided', lastChecked: undefined } as const;
      if (!isSame) this.#verdicts.set(`${object} ${name}`, written ?? undecided);
    }
  }

  remove(object: Key): void {
    this.set(object, new Map());
    this.checked.delete(object);
  }

  verdict(object: Key, endpoint: string): Verdict | undefined {
    return this.#verdicts.get(`${object} ${endpoint}`);
  }

  subscribe(listener: (object: Key) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.checked.clear();
  }

  /** Another result; as a monitor, notifies only where the verdict is another. */
  decide(object: Key, endpoint: string, verdict: Verdict): void {
    const before = this.verdict(object, endpoint);
    if (!before) throw new Error(`endpoint ${endpoint} of ${object} is not checked`);
    this.#verdicts.set(`${object} ${endpoint}`, verdict);
    const isSame = before.is === verdict.is && before.error === verdict.error;
    if (!isSame) for (const listener of this.#listeners) listener(object);
  }
}
