import type { Clock } from '../api/clock.ts';
import type { LeasePort } from '../resources/lease.ts';
import type { Term } from './leader.ts';
import type { LeaseTiming } from './leader-timing.ts';
import type { LeadershipTelemetry } from './leadership-observer.ts';
import type { Leading } from './leading.ts';

/** What leadership works with. */
export type LeadershipParts = {
  /** As it stands in logs and metrics. */
  readonly name: string;
  /** Who we are, for people: the name of the pod. What tells processes apart is added. */
  readonly identity: string;
  readonly lease: LeasePort;
  readonly clock: Clock;
  readonly random: () => number;
  readonly telemetry: LeadershipTelemetry;
  readonly timing?: LeaseTiming;
  /** Whether it could do what a leader does: it does not strive for it before; always if not given. */
  readonly isReady?: () => boolean;
  /** Begins what a leader does, on becoming one; never while something of a former leadership is under way. */
  readonly lead: (term: Term) => Leading;
  /** Called once where what was led did not end: the process must end at once, since another may lead soon. */
  readonly mustExit: (reason: Error) => void;
};
