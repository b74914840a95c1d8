import { FLAPPING } from '../api/shares.ts';
import { isSameFailure } from './health.ts';
import type { Verdict } from './health.ts';

/** What is published about an endpoint: the verdict by its thresholds, unless that keeps changing. */
export type Damping = {
  readonly published: Verdict;
  /** How long what is published stays after the endpoint became worse. */
  readonly holdMs: number;
  /** When it last became unhealthy, or unhealthy for another reason. */
  readonly worseAt: number;
};

export function initialDamping(verdict: Verdict): Damping {
  return { published: verdict, holdMs: 0, worseAt: -Infinity };
}

/*
 * What is published after a check, at a time in milliseconds:
 *
 *   published              decided by thresholds           published next
 *   undecided or healthy   any                             the decided, at once
 *   unhealthy              healthy, or another cause       the decided, if the hold is over
 *   unhealthy              unhealthy for the same cause    the same
 *
 * The hold begins each time that an endpoint becomes worse. It is 0 after a quiet time, then 1 s, and twice as long each
 * time, up to 30 s. While it lasts, the error of an endpoint that became unhealthy names it.
 */
export function damp(before: Damping, from: Verdict, decided: Verdict, at: number): Damping {
  const isWorse = decided.is === 'unhealthy' && !isSameFailure(from, decided.code);
  const isHeld = at - before.worseAt < before.holdMs;
  const holdMs = isWorse ? nextHoldMs(before, at) : before.holdMs;
  const isFlap = isWorse && holdMs > 0 && from.is === 'healthy';
  const next = isFlap ? flapping(decided) : decided;
  const published = isHeld ? { ...before.published, lastChecked: decided.lastChecked } : next;
  return { published, holdMs, worseAt: isWorse ? at : before.worseAt };
}

function nextHoldMs({ holdMs, worseAt }: Damping, at: number): number {
  if (at - worseAt >= FLAPPING.quietMs) return 0;
  return Math.min(Math.max(2 * holdMs, FLAPPING.firstHoldMs), FLAPPING.maxHoldMs);
}

type Unhealthy = Extract<Verdict, { readonly is: 'unhealthy' }>;

function flapping(verdict: Unhealthy): Unhealthy {
  return {
    ...verdict,
    error: `flapping, unhealthy for up to ${FLAPPING.maxHoldMs / 1000}s: ${verdict.error}`,
  };
}
