import { GROUP } from '../../api/generated/kinds.ts';
import { isRecord } from '../../api/rule-functions.ts';
import { groupOf } from '../written.ts';
import type { ReadWritten, WrittenKey, WrittenObject } from '../written.ts';
import { Definitions } from './definitions.ts';

/** What a file has of such objects. */
export type Writes = ReadonlyMap<WrittenKey, WrittenObject>;

/** An object of others; nothing where it is ours, which are read whole, or is nameless. */
export function writtenIn(value: unknown, namespace: string): WrittenObject | undefined {
  if (!isRecord(value) || !isRecord(value['metadata'])) return undefined;
  const { apiVersion, kind, metadata } = value;
  const { name } = metadata;
  if (typeof apiVersion !== 'string' || typeof kind !== 'string' || typeof name !== 'string')
    return undefined;
  if (name === '' || groupOf({ apiVersion }) === GROUP) return undefined;
  return { apiVersion, kind, namespace, name, whole: value };
}

/** The namespace that an object of an unknown kind says, or else the default one. */
export function namespaceIn(value: unknown, defaultNamespace: string): string {
  const metadata = isRecord(value) ? value['metadata'] : undefined;
  const namespace = isRecord(metadata) ? metadata['namespace'] : undefined;
  return typeof namespace === 'string' && namespace !== '' ? namespace : defaultNamespace;
}

/** What all files have of such objects, for somebody who wants them as they are. */
export class WrittenObjects implements ReadWritten {
  readonly #definitions = new Definitions<WrittenKey, WrittenObject>();
  readonly #unread = new Set<string>();
  #changed = new Set<WrittenKey>();

  of(file: string): Writes {
    return this.#definitions.of(file);
  }

  /** Takes what a file has now. */
  replace(file: string, writes: Writes, nowMs: number): void {
    this.#unread.delete(file);
    for (const key of this.#definitions.replace(file, writes, nowMs)) this.#changed.add(key);
  }

  /** Nothing can be known of a file now; what it had before still counts. */
  fail(file: string): void {
    if (this.#definitions.of(file).size === 0) this.#unread.add(file);
  }

  giveUp(beforeMs: number): void {
    for (const key of this.#definitions.giveUp(beforeMs)) this.#changed.add(key);
  }

  missingSinceMs(): number | undefined {
    return this.#definitions.missingSinceMs();
  }

  /** What has changed since this was asked last. */
  takeChanged(): readonly WrittenKey[] {
    const changed = [...this.#changed];
    this.#changed = new Set();
    return changed;
  }

  get(key: WrittenKey): { readonly object: WrittenObject; readonly file: string } | undefined {
    const found = this.#definitions.get(key);
    return found && { object: found.object, file: found.from.file };
  }

  keys(): readonly WrittenKey[] {
    return this.#definitions.keys();
  }

  hasUnread(): boolean {
    return this.#unread.size > 0;
  }
}
