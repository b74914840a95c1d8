import { jsonObjectIn } from '../../../api/json.ts';

/** Whether the network plugin of the cluster enforces NetworkPolicies, those of mesh-gateway included. */
export type Enforcement = 'enforced' | 'not-enforced' | 'unknown';

/** The closed list of reasons, each with the one state that it explains. */
const REASONS = {
  NetworkPoliciesEnforced: 'enforced',
  /** A connection succeeded that the policies forbid. */
  NotEnforced: 'not-enforced',
  /** The configuration installs no policies. */
  NotInstalled: 'not-enforced',
  NoMeshPod: 'unknown',
  NoExtensionServer: 'unknown',
  /** Neither connection succeeded, so that something else may be wrong. */
  Unreachable: 'unknown',
  /** The process has just started, or its machine has no socket left. */
  NotTried: 'unknown',
  /** A replica of the operator has reported nothing for a while. */
  NotReported: 'unknown',
} as const satisfies Readonly<Record<string, Enforcement>>;

/** Why a state is as it is. */
export type EnforcementReason = keyof typeof REASONS;

/** A state by its reason. */
export function enforcementOf(reason: EnforcementReason): Enforcement {
  return REASONS[reason];
}

/** How an attempt to connect ended. */
export type Outcome =
  /** The TCP handshake was completed. */
  | 'accepted'
  /** Reset, or an ICMP message. */
  | 'refused'
  | 'timed-out'
  /** For a reason of this process or its machine. */
  | 'failed';

/** What one replica tried at about the same time. */
export type Attempts = {
  /** Connections to port 5005 of pods of the extension server that were ready before and after. */
  readonly forbidden: readonly Outcome[];
  /** Connections to port 9002 of ready mesh pods. */
  readonly permitted: readonly Outcome[];
};

/**
 * What attempts show:
 *
 *   outcome      to the forbidden port                         to the permitted port
 *   accepted     packets pass: no policy is enforced           packets pass
 *   refused      something rejects: a plugin may, instead of   nothing: a plugin may reject, or meshd has just
 *                dropping, and a server that is ready accepts  stopped
 *   timed out    something drops                               nothing: the network may be down
 *   failed       nothing                                       nothing
 *
 * One forbidden connection that succeeds is enough. That none does shows enforcement only where the server is known to listen,
 * which the kubelet probes on that port, and where the network is known to work. The Service would not do: without ready pods
 * kube-proxy rejects its connections itself.
 */
export function findingOf({ forbidden, permitted }: Attempts): EnforcementReason {
  if (forbidden.includes('accepted')) return 'NotEnforced';
  if (permitted.length === 0) return 'NoMeshPod';
  if (forbidden.length === 0) return 'NoExtensionServer';
  if (!permitted.includes('accepted')) return 'Unreachable';
  return forbidden.every(outcome => outcome === 'failed') ? 'NotTried' : 'NetworkPoliciesEnforced';
}

/** What a replica has found so far. */
export type Verdict = {
  readonly reason: EnforcementReason;
  /** When attempts last showed it. */
  readonly shownAt: number;
  /** Since when all attempts show that policies are enforced; undefined where the last ones do not. */
  readonly enforcedSince: number | undefined;
};

/** Before the first attempts. */
export const UNTRIED: Verdict = { reason: 'NotTried', shownAt: -Infinity, enforcedSince: undefined };

/**
 * How long attempts must agree that policies are enforced. A node that has just died drops packets, too, and the pods on it stay
 * ready for 40 s.
 */
const [FIRST_MS, RECOVERY_MS] = [10_000, 60_000];

/** How long a verdict stays while attempts show nothing, such as while the extension server is down. */
const KEPT_MS = 300_000;

/** The verdict after attempts: a forbidden connection that succeeds counts at once, that none does once attempts agree. */
export function verdictAfter(before: Verdict, found: EnforcementReason, now: number): Verdict {
  const state = enforcementOf(before.reason);
  switch (enforcementOf(found)) {
    case 'not-enforced':
      return { reason: found, shownAt: now, enforcedSince: undefined };
    case 'enforced': {
      const enforcedSince = before.enforcedSince ?? now;
      const neededMs = state === 'enforced' ? 0 : state === 'unknown' ? FIRST_MS : RECOVERY_MS;
      const isSure = now - enforcedSince >= neededMs;
      return isSure ? { reason: found, shownAt: now, enforcedSince } : { ...before, enforcedSince };
    }
    case 'unknown': {
      const isKept = state !== 'unknown' && now - before.shownAt < KEPT_MS;
      return isKept
        ? { ...before, enforcedSince: undefined }
        : { reason: found, shownAt: now, enforcedSince: undefined };
    }
  }
}

/** What all replicas have found. */
export type Finding = {
  readonly enforcement: Enforcement;
  readonly reason: EnforcementReason;
  /** The operator pods that have found it, in the order of their names. */
  readonly pods: readonly string[];
};

const FROM_WORST: readonly Enforcement[] = ['not-enforced', 'unknown', 'enforced'];

/** The worst of what replicas have found, by the names of their pods; not tried where there is none. */
export function worstOf(found: ReadonlyMap<string, EnforcementReason>): Finding {
  const inOrder = [...found].sort(([one], [other]) => (one < other ? -1 : 1));
  const states = inOrder.map(([, reason]) => enforcementOf(reason));
  const enforcement = FROM_WORST.find(state => states.includes(state)) ?? 'unknown';
  const worst = inOrder.filter(([, reason]) => enforcementOf(reason) === enforcement);
  return { enforcement, reason: worst[0]?.[1] ?? 'NotTried', pods: worst.map(([pod]) => pod) };
}

/** What a replica reports to the others. */
export type Report = { readonly reason: EnforcementReason; readonly at: Date };

/** A report as the text of a ConfigMap. */
export function formatReport({ reason, at }: Report): string {
  return JSON.stringify({ enforcement: enforcementOf(reason), reason, at: at.toISOString() });
}

/** Undefined for a text that is no report, which any client may write. */
export function parseReport(text: string): Report | undefined {
  const { reason, at } = jsonObjectIn(text) ?? {};
  const date = new Date(typeof at === 'string' ? at : '');
  if (Number.isNaN(date.getTime()) || !isReason(reason)) return undefined;
  return { reason, at: date };
}

function isReason(value: unknown): value is EnforcementReason {
  return typeof value === 'string' && Object.hasOwn(REASONS, value);
}
