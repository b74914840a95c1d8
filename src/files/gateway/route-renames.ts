import type { Clock } from '../../api/clock.ts';

/**
 * The phase of a rename: in `both` the route exists under both names, in `retire` the old one is to be removed, and in
 * `cooldown` the old one must not be used again yet.
 */
export type Phase = 'idle' | 'both' | 'retire' | 'cooldown';

/** Until Envoy has the new clusters with healthy endpoints. */
const BOTH_MS = 5000;

/** Until Envoy Gateway has noticed that a name is deleted, so that it can be used again. */
const COOLDOWN_MS = 2000;

/** Per object: Envoy Gateway reads all of them before it notices a change. */
const READ_MS = 150;

/** The routes that are being renamed; calls `notify` when one enters its next phase by time. */
export class RouteRenames {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #objects: () => number;
  readonly #notify: (part: string) => void;
  readonly #phases = new Map<string, { readonly phase: Phase; readonly cancel: () => void }>();

  /** `objects` returns the number of objects in the folder. */
  constructor(clock: Pick<Clock, 'after'>, objects: () => number, notify: (part: string) => void) {
    this.#clock = clock;
    this.#objects = objects;
    this.#notify = notify;
  }

  phaseOf(part: string): Phase {
    return this.#phases.get(part)?.phase ?? 'idle';
  }

  enter(part: string, phase: 'both' | 'cooldown'): void {
    this.forget(part);
    const [ms, next] = phase === 'both' ? ([BOTH_MS, 'retire'] as const) : ([COOLDOWN_MS, 'idle'] as const);
    const cancel = this.#clock.after(ms + READ_MS * this.#objects(), () => {
      if (next === 'idle') this.#phases.delete(part);
      else this.#phases.set(part, { phase: next, cancel: () => undefined });
      this.#notify(part);
    });
    this.#phases.set(part, { phase, cancel });
  }

  forget(part: string): void {
    this.#phases.get(part)?.cancel();
    this.#phases.delete(part);
  }

  close(): void {
    for (const part of [...this.#phases.keys()]) this.forget(part);
  }
}
