import type { UnusedBackend } from '../../traffic/unused.ts';
import type { Clock } from '../../api/clock.ts';
import type { Follower } from '../dependency-cache.ts';
import type { SourcedAssignment, Assignments } from './assigned.ts';
import { contentOf } from './content.ts';
import type { Content } from './content.ts';
import { leavingAfter, withLeaving } from './draining.ts';
import type { Leaving } from './draining.ts';

/** Follows one cluster over one stream. */
export type Subscription = {
  readonly served: Served;
  readonly stream: { owe(subscription: Subscription): void };
  /** The version that was sent last, or that the Envoy said it has; none if it knows nothing of the cluster. */
  sent: string | undefined;
  /** It is to be sent even if it was sent before. */
  isAsked: boolean;
};

/** What stands for a version where there is nothing to send. */
export const ABSENT = '';

/** What all clusters share that are served. */
export type ServedParts = {
  readonly assignments: Assignments;
  readonly clock: Clock;
  readonly drainMs: number;
  /** The cluster may have to be sent. */
  readonly announce: (served: Served) => void;
  readonly reportFailure: (served: Served, error: unknown) => void;
};

/** A cluster as some streams of one Gateway follow it; what is sent of it is made once for all of them. */
export class Served implements Follower {
  readonly cluster: string;
  readonly gateway: string;
  readonly subscriptions = new Set<Subscription>();
  /** When it last began to be out of date. */
  changedAt: number;
  readonly #parts: ServedParts;
  #isStale = true;
  #assigned: SourcedAssignment | undefined;
  #content: Content | undefined;
  #leaving: readonly Leaving[] = [];
  #stopDraining: (() => void) | undefined;

  constructor(cluster: string, gateway: string, parts: ServedParts) {
    this.cluster = cluster;
    this.gateway = gateway;
    this.changedAt = parts.clock.now();
    this.#parts = parts;
  }

  begin(): void {
    this.#parts.assignments.follow(this.cluster, this.gateway, this);
  }

  end(): void {
    this.#parts.assignments.unfollow(this.cluster, this.gateway, this);
    this.#stopDraining?.();
  }

  changed(): void {
    if (!this.#isStale) this.changedAt = this.#parts.clock.now();
    this.#isStale = true;
    this.#parts.announce(this);
  }

  /** What is to be sent at this moment; nothing where the name of the cluster means nothing. */
  content(): Content | undefined {
    if (this.#isStale) this.#renew();
    return this.#content;
  }

  isDue({ sent, isAsked }: Subscription): boolean {
    return isAsked || sent !== (this.content()?.version ?? ABSENT);
  }

  /** What gets no traffic of what was last found; nothing where the name means nothing. */
  get unused(): readonly UnusedBackend[] | undefined {
    return this.#assigned?.unused;
  }

  /** What cannot be computed stays as it was. */
  #renew(): void {
    this.#isStale = false;
    try {
      const next = this.#parts.assignments.find(this.cluster, this.gateway);
      this.#setLeaving(next);
      this.#content = next && contentOf(withLeaving(next.assignment, this.#leaving));
      this.#assigned = next;
    } catch (error) {
      this.#parts.reportFailure(this, error);
    }
  }

  #setLeaving(next: SourcedAssignment | undefined): void {
    const { clock, drainMs } = this.#parts;
    const before = this.#assigned;
    const step = { leaving: this.#leaving, now: clock.now(), drainMs };
    this.#leaving = before && next ? leavingAfter({ ...step, before, next }) : [];
    this.#stopDraining?.();
    this.#stopDraining = undefined;
    if (this.#leaving.length === 0) return;
    const first = Math.min(...this.#leaving.map(({ until }) => until));
    this.#stopDraining = clock.after(first - step.now, () => this.changed());
  }
}
