import type { Key } from '../../../api/key.ts';

/** What is known of the host of an externalTarget. */
export type Resolution =
  | {
      readonly is: 'resolved';
      /** Sorted; at most 16. */
      readonly addresses: readonly string[];
      /** Why they may be out of date: the last lookup failed. */
      readonly problem?: string;
    }
  /** No lookup has succeeded yet. */
  | { readonly is: 'unresolved'; readonly problem: string }
  /** Traffic may not be sent to the host, or to one of its addresses. `problem` names it, and has the fix. */
  | { readonly is: 'refused'; readonly problem: string };

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
