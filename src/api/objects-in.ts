import { isRecord } from './rule-functions.ts';

/** An object of a document, and the steps to it from the document's root. */
export type Placed = { readonly object: unknown; readonly steps: readonly string[] };

/** The object of a document, or the items of a List, as `kubectl get -o yaml` prints them. */
export function objectsIn(value: unknown): readonly Placed[] {
  const isList = isRecord(value) && value['kind'] === 'List' && Array.isArray(value['items']);
  if (!isList) return [{ object: value, steps: [] }];
  const items = value['items'] as readonly unknown[];
  return items.map((object, index) => ({ object, steps: ['items', String(index)] }));
}
