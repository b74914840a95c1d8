import type { Key } from '../api/key.ts';
import type { Check } from './check.ts';

/** The health of an endpoint by its checks. */
export type Verdict =
  /** The checks have not reached a threshold yet. */
  | { readonly is: 'undecided'; readonly error?: undefined; readonly lastChecked: Date | undefined }
  | { readonly is: 'healthy'; readonly error?: undefined; readonly lastChecked: Date | undefined }
  | {
      readonly is: 'unhealthy';
      readonly error: string;
      /** Of the failure; undefined where another process has decided it. */
      readonly code: string | undefined;
      readonly lastChecked: Date | undefined;
    };

/** Whether an endpoint that fails now was unhealthy before, for the same cause as far as that is known. */
export function isSameFailure(before: Verdict, code: string | undefined): boolean {
  return before.is === 'unhealthy' && (before.code === undefined || before.code === code);
}

/** A check, and the verdict that was written last about the endpoint at this address. */
export type CheckedEndpoint = { readonly check: Check; readonly written: Verdict | undefined };

/** Checks endpoints, and decides by the thresholds of their checks. */
export interface HealthMonitor {
  /** Replaces what is checked of a MeshEndpoints, by the names of its endpoints. */
  set(object: Key, endpoints: ReadonlyMap<string, CheckedEndpoint>): void;
  /** Ends the checks of a MeshEndpoints. */
  remove(object: Key): void;
  /** Undefined for an endpoint that is not checked. One that flaps stays unhealthy. */
  verdict(object: Key, endpoint: string): Verdict | undefined;
  /**
   * Calls a listener with each MeshEndpoints of which a verdict is another, at most once a second for each; returns the
   * function that unsubscribes it.
   */
  subscribe(listener: (object: Key) => void): () => void;
  /** Ends all checks; those in progress are aborted. */
  close(): void;
}
