import type { ResourceKind } from '../../../../src/api/key.ts';
import { Source } from '../../../../src/store/dependencies.ts';
import type { DerivedValue, DerivedValues } from '../../../../src/store/tracking.ts';

/** The revisions of Gateways, as a test sets them. */
export class ScriptedRevisions implements DerivedValues<string | undefined> {
  readonly kinds: ReadonlySet<ResourceKind> = new Set();
  readonly #values = new Map<
    string,
    DerivedValue<string | undefined> & { value: string | undefined; version: number }
  >();

  /** By the name of a Gateway of the namespace default. */
  set(gateway: string, revision: string): void {
    const entry = this.entry(`Gateway/default/${gateway}`);
    Object.assign(entry, { value: revision, version: entry.version + 1 });
    const change = { isInInitialList: false, isOfStatus: false, indexed: [] };
    entry.source.notify(false, { key: `Gateway/default/${gateway}`, ...change });
  }

  entry(name: string): DerivedValue<string | undefined> {
    const known = this.#values.get(name);
    if (known) return known;
    const source = new Source(name, { release: () => undefined });
    const created = { source, value: undefined, version: 1, refresh: () => undefined };
    this.#values.set(name, created);
    return created;
  }
}
