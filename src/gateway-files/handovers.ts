import type { Clock } from '../api/clock.ts';

/** How far a route is on its way to its other name: both are there, the old one is to go, it is gone for a short while. */
export type Phase = 'free' | 'both' | 'over' | 'rest';

/** Until Envoy has new clusters with endpoints that it has checked. */
const BOTH_MS = 5000;

/** Until Envoy Gateway has seen that a name is gone, so that it can come back as another object. */
const REST_MS = 2000;

/** Of each object that Envoy Gateway reads anew, as it does with all of them before it sees a change. */
const READ_MS = 150;

/** Knows which parts have an object under two names, and tells when something is to be done about that. */
export class Handovers {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #objects: () => number;
  readonly #tell: (part: string) => void;
  readonly #phases = new Map<string, { readonly phase: Phase; readonly cancel: () => void }>();

  /** For a folder of so many objects. */
  constructor(clock: Pick<Clock, 'after'>, objects: () => number, tell: (part: string) => void) {
    this.#clock = clock;
    this.#objects = objects;
    this.#tell = tell;
  }

  phaseOf(part: string): Phase {
    return this.#phases.get(part)?.phase ?? 'free';
  }

  enter(part: string, phase: 'both' | 'rest'): void {
    this.forget(part);
    const [ms, next] = phase === 'both' ? ([BOTH_MS, 'over'] as const) : ([REST_MS, 'free'] as const);
    const cancel = this.#clock.after(ms + READ_MS * this.#objects(), () => {
      if (next === 'free') this.#phases.delete(part);
      else this.#phases.set(part, { phase: next, cancel: () => undefined });
      this.#tell(part);
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
