import type { ComponentPod } from '../../../store/replicas.ts';
import { formatReport, parseReport } from './verdict.ts';
import type { EnforcementReason, Report } from './verdict.ts';

/** What the other replicas have found, by the names of their pods. */
export type Others = ReadonlyMap<string, EnforcementReason>;

/** A report that has not changed is written again after this time. */
const RENEW_MS = 120_000;

/** An older one counts as none. */
const STALE_MS = 300_000;

type Texts = Readonly<Record<string, string>>;

/** The report of this replica, if it is to be written: it has changed, or has not been renewed for a while. */
export function toReport(texts: Texts, podName: string, report: Report): Texts {
  const stored = parseReport(texts[podName] ?? '');
  const isCurrent = stored?.reason === report.reason && ageOf(stored, report.at) < RENEW_MS;
  return isCurrent ? {} : { [podName]: formatReport(report) };
}

/** A change that removes the reports of replicas that do not run any more. */
export function staleIn(
  texts: Texts,
  pods: readonly ComponentPod[],
  podName: string,
): Readonly<Record<string, null>> {
  const running = new Set([podName, ...operatorsIn(pods).map(({ name }) => name)]);
  const stale = Object.keys(texts).filter(name => !running.has(name));
  return Object.fromEntries(stale.map(name => [name, null]));
}

/** Since when replicas that are ready have had no report that counts, by the names of their pods. */
export type Silent = ReadonlyMap<string, number>;

/** A replica that has just started may be silent for this time. */
const SILENT_MS = 120_000;

/** What the others have found: of those that run; one that is silent has found nothing. */
export function othersOf(
  texts: Texts,
  pods: readonly ComponentPod[],
  podName: string,
  now: Date,
  before: Silent,
): { readonly others: Others; readonly silent: Silent } {
  const silent = new Map<string, number>();

  const running = operatorsIn(pods).filter(({ name }) => name !== podName);
  const others = new Map(
    running.flatMap(({ name, isReady }): readonly [string, EnforcementReason][] => {
      const report = parseReport(texts[name] ?? '');
      if (report && ageOf(report, now) < STALE_MS) return [[name, report.reason]];
      if (!isReady) return [];
      const since = before.get(name) ?? now.getTime();
      silent.set(name, since);
      return [[name, now.getTime() - since < SILENT_MS ? 'NotTried' : 'NotReported']];
    }),
  );
  return { others, silent };
}

function operatorsIn(pods: readonly ComponentPod[]): readonly ComponentPod[] {
  return pods.filter(({ component }) => component === 'operator');
}

/** Clocks of nodes may differ either way. */
function ageOf({ at }: Report, now: Date): number {
  return Math.abs(now.getTime() - at.getTime());
}
