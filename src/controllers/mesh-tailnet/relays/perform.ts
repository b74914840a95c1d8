import { once } from 'node:events';
import type { Clock } from '../../../api/clock.ts';
import { targetsVersion } from '../../../api/relay-targets.ts';
import { endsWithin } from '../../../runtime/clock.ts';
import type { Workload } from '../../../store/own-namespace.ts';
import { regardingOf } from '../../../store/resources.ts';
import type { ApplyObjects, RecordEvents } from '../../../store/resources.ts';
import type { Log } from '../../../telemetry/log.ts';
import { confirm } from './confirmation.ts';
import type { Confirmation } from './confirmation.ts';
import type { Input } from './gather.ts';
import type { Plan } from './plan.ts';
import { readRelays } from './relay-status.ts';
import type { HttpGet } from './relay-status.ts';

export type PerformDeps = {
  readonly ownNamespace: ApplyObjects<Workload>;
  readonly httpGet: HttpGet;
  readonly clock: Clock;
  readonly events: RecordEvents;
  readonly log: Log;
};

export type PerformOptions = {
  readonly input: Input;
  /** Of the last reconcile. */
  readonly before: Confirmation;
  readonly signal: AbortSignal;
};

/** Gives the targets to the relays, reads which of them listen, and reports new problems. */
export async function perform(plan: Plan, options: PerformOptions, deps: PerformDeps): Promise<Confirmation> {
  if (plan.action.do === 'apply') await deps.ownNamespace.apply(plan.action.object);
  const confirmation = await confirmPorts(plan, options, deps);
  reportProblems(confirmation, options, deps);
  return confirmation;
}

/** After new targets, relays are read after these times, until they have them: so changes in quick succession are one write. */
const SETTLE_MS = [100, 200, 400];

/** Reads the relays, and decides which ports are confirmed. */
async function confirmPorts(
  { ports, text }: Plan,
  { input: { tailnet, pods, stored }, before, signal }: PerformOptions,
  deps: PerformDeps,
): Promise<Confirmation> {
  const { clock } = deps;
  const aborted = once(signal, 'abort');
  const targets = { tailnet: tailnet.metadata.name, ports, version: targetsVersion(text) };
  const relays = ports.size === 0 ? [] : pods;
  let confirmation = before;
  for (const ms of stored !== text && relays.length > 0 ? SETTLE_MS : [0]) {
    if (ms > 0) await endsWithin(clock, ms, aborted);
    const reports = await readRelays(relays, signal, deps);
    confirmation = confirm(confirmation, { ...targets, reports, now: clock.now() });
    if (!confirmation.isWaiting) break;
  }
  return confirmation;
}

/** Records an Event and a log line for each problem of a relay that it did not have before. */
function reportProblems(
  { problems }: Confirmation,
  { input: { tailnet }, before }: PerformOptions,
  { events, log }: PerformDeps,
): void {
  const { name } = tailnet.metadata;
  for (const { pod, reason, why } of problems.values()) {
    if (before.problems.get(pod.uid)?.reason === reason) continue;
    log.warn('a relay does not listen on all of its ports', { tailnet: name, pod: pod.name, reason, why });
    events.record({
      regarding: regardingOf(tailnet),
      type: 'Warning',
      reason,
      action: 'Reconcile',
      note: `mesh pod ${pod.name}: ${why}`,
    });
  }
}
