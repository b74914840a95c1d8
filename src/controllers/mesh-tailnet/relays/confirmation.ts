import { RELAY } from '../../../api/names.ts';
import type { Why } from '../../../api/problem.ts';
import { cutText } from '../../../api/text.ts';
import type { RelayPod, RelayReport, RelayResponse } from './relay-status.ts';

/** What is known of the relays of a tailnet. */
export type Confirmation = {
  /** The ports on which relays listen, by target. */
  readonly confirmed: ReadonlyMap<string, number>;
  /** Since when a relay has not had the current targets, by the uid of its pod. */
  readonly behindSince: ReadonlyMap<string, number>;
  /** What is wrong with a relay, by the uid of its pod. */
  readonly problems: ReadonlyMap<string, RelayProblem>;
  /** Why no relay can listen on the port of a target, by target. */
  readonly failed: ReadonlyMap<string, Why>;
  /** What an unconfirmed port waits for, by target, where that may take long. */
  readonly pending: ReadonlyMap<string, Why>;
  /** Whether relays are expected to have the targets soon. */
  readonly isWaiting: boolean;
  /** How soon the relays are read again; undefined where all of them listen on all ports. */
  readonly nextMs: number | undefined;
};

/** What is wrong with a relay. */
type RelayProblem = {
  readonly pod: RelayPod;
  readonly reason: 'RelayNotCurrent' | 'RelayPortsFailed';
  readonly why: string;
};

/** Nothing is known yet. */
export const UNCONFIRMED: Confirmation = {
  confirmed: new Map(),
  behindSince: new Map(),
  problems: new Map(),
  failed: new Map(),
  pending: new Map(),
  isWaiting: false,
  nextMs: undefined,
};

export type ConfirmationInput = {
  readonly tailnet: string;
  /** The assigned ports, by target. */
  readonly ports: ReadonlyMap<string, number>;
  /** Of the targets in the ConfigMap. */
  readonly version: string;
  /** Of all ready pods with a relay. */
  readonly reports: readonly RelayReport[];
  readonly now: number;
};

/** A relay that has not had the current targets for this long is reported, and not waited for. */
const LATE_MS = 10_000;

/** How soon relays are read again that are expected to listen soon, at first and later, and others. */
const [FIRST_MS, SOON_MS, SLOW_MS] = [200, 1000, 10_000];

/*
 * A relay has the current targets, or it is behind: for less than 10 s it is waited for, then it is late. A port
 *
 *   that a current relay listens on     is confirmed once no relay is waited for, and stays confirmed
 *   that all current relays failed      is not confirmed (any more) once no relay is waited for
 *   otherwise                           is not confirmed, or stays confirmed
 */
export function confirm(before: Confirmation, input: ConfirmationInput): Confirmation {
  const { ports, version, reports, now } = input;
  const current = reports.flatMap(({ pod, response }) =>
    'version' in response && response.version === version ? [{ pod, failed: response.failed }] : [],
  );
  const behind = reports
    .filter(({ pod }) => !current.some(relay => relay.pod === pod))
    .map(report => ({ ...report, since: before.behindSince.get(report.pod.uid) ?? now }));
  const waiting = behind.filter(({ since }) => now - since < LATE_MS);
  const late = behind.filter(relay => !waiting.includes(relay));
  const found = [...late.map(notCurrent), ...current.flatMap(relay => portsFailed(relay, ports) ?? [])];
  const problems = new Map(found.map(problem => [problem.pod.uid, problem]));
  const isWaiting = waiting.length > 0;
  const isSettled = !isWaiting && current.length > 0;
  const confirmed = new Map<string, number>();
  const failed = new Map<string, Why>();
  const pending = new Map<string, Why>();
  for (const [target, port] of ports) {
    const isListening = current.some(relay => !relay.failed.has(port));
    const wasConfirmed = before.confirmed.get(target) === port;
    if (isSettled ? isListening : wasConfirmed) confirmed.set(target, port);
    else if (isSettled) failed.set(target, whyFailed(port, current));
    else if (reports.length === 0) pending.set(target, withoutRelay(input.tailnet));
    else if (!isWaiting) pending.set(target, whyLate(late));
  }
  const isFresh = waiting.every(({ since }) => now - since < SOON_MS);
  const slowMs = problems.size > 0 ? SLOW_MS : undefined;
  return {
    confirmed,
    problems,
    failed,
    pending,
    behindSince: new Map(behind.map(({ pod, since }) => [pod.uid, since])),
    isWaiting,
    nextMs: !isWaiting ? slowMs : isFresh ? FIRST_MS : SOON_MS,
  };
}

function notCurrent({ pod, response }: RelayReport): RelayProblem {
  return { pod, reason: 'RelayNotCurrent', why: whyBehind(response) };
}

function whyBehind(response: RelayResponse): string {
  if (!('error' in response)) return 'its relay has not read its current targets';
  return `its relay does not respond on port ${RELAY.ports.http} (${cutText(response.error, 70)})`;
}

type FailedPorts = { readonly pod: RelayPod; readonly failed: ReadonlyMap<number, string> };

function portsFailed({ pod, failed }: FailedPorts, ports: ReadonlyMap<string, number>) {
  const assigned = new Set(ports.values());
  const [first, ...others] = [...failed].filter(([port]) => assigned.has(port));
  if (!first) return undefined;
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  const why = `its relay cannot listen on UDP port ${first[0]} (${first[1]})${more}`;
  return { pod, reason: 'RelayPortsFailed', why } as const;
}

function whyFailed(port: number, relays: readonly FailedPorts[]): Why {
  const why = relays.map(({ pod, failed }) => `${pod.name}: ${failed.get(port)}`).join(', ');
  const text = `no mesh pod can listen on UDP port ${port} (${cutText(why, 120)})`;
  return { text, fix: 'choose other meshPods.relayPorts (RELAY_PORTS)' };
}

function whyLate([relay]: readonly RelayReport[]): Why {
  const why = relay ? `${relay.pod.name}: ${whyBehind(relay.response)}` : '';
  const text = `no relay listens on the port yet (${why})`;
  return { text, fix: 'see the log of the container relay' };
}

function withoutRelay(tailnet: string): Why {
  const text = `MeshTailnet ${tailnet} has no ready mesh pod with a relay`;
  return { text, fix: 'see its condition PoolReady' };
}
