import type { Finding } from '../api/conditions.ts';
import { API_VERSION } from '../api/generated/kinds.ts';
import type { Kinds } from '../api/generated/types.ts';
import { refTo, tailnetsOf } from '../api/references.ts';
import type { RecordEvents } from '../resources/resources.ts';
import type { AnyIndex, WriteResources } from '../resources/resources.ts';
import type { Controller } from '../runtime/controller.ts';
import { byIndex, whenChanges } from '../runtime/trigger.ts';
import type { Log } from '../telemetry/log.ts';
import { gather, intervalMsOf, tailnetsByDomain } from './gather.ts';
import type { GatherDeps } from './gather.ts';
import { statusOf } from './status.ts';

type MeshTailnet = Kinds['MeshTailnet'];
type Status = NonNullable<MeshTailnet['status']>;

/** What the controller works with. */
export type TailnetDeps = GatherDeps & {
  readonly write: Pick<WriteResources, 'replaceStatus'>;
  readonly events: RecordEvents;
  readonly log: Log;
};

/** The indexes that the store must have been made with. */
export const tailnetIndexes: readonly AnyIndex[] = [tailnetsByDomain];

/** Authenticates with the control API of each MeshTailnet, and reports what it finds there in its status. */
export function tailnetController(deps: TailnetDeps): Controller<'MeshTailnet'> {
  const { read, write, tailnets } = deps;
  const report = reporter(deps);
  return {
    name: 'mesh-tailnet',
    kind: 'MeshTailnet',
    // One that is deleted may end the conflict of others.
    triggers: [whenChanges('MeshTailnet', tailnetsOf, byIndex(tailnetsByDomain))],
    reconcile: async ref => {
      const tailnet = read.get(ref);
      if (!tailnet) {
        tailnets.forget(ref.name);
        report.forget(ref.name);
        return { requeue: 'on-change' };
      }
      const situation = await gather(tailnet, deps);
      const status = statusOf(situation);
      if (status !== tailnet.status) await write.replaceStatus(tailnet, status);
      report.changes(tailnet, status);
      const isPolled = situation.olderName === undefined && situation.problem?.reason !== 'ControlURLMissing';
      return isPolled ? { requeue: 'after', ms: intervalMsOf(tailnet) } : { requeue: 'on-change' };
    },
  };
}

/** Records an Event for each transition, and a log line for each that this process has not logged yet. */
function reporter({ events, log }: Pick<TailnetDeps, 'events' | 'log'>) {
  const logged = new Map<string, string>();
  return {
    forget: (name: string) => void logged.delete(name),
    changes: (tailnet: MeshTailnet, { conditions = [] }: Status) => {
      const { name } = tailnet.metadata;
      for (const condition of conditions) {
        const before = tailnet.status?.conditions?.find(({ type }) => type === condition.type);
        if (!isSame(before, condition) && condition.reason !== 'NotAuthenticated') {
          events.record(eventOf(tailnet, condition));
        }
        const key = `${condition.status} ${condition.reason}`;
        if (condition.type !== 'Authenticated' || logged.get(name) === key) continue;
        logged.set(name, key);
        logLine(log, name, condition);
      }
    },
  };
}

function isSame(before: Finding | undefined, now: Finding): boolean {
  return before?.status === now.status && before.reason === now.reason;
}

function eventOf(tailnet: MeshTailnet, { type, status, reason, message }: Finding) {
  const { name, uid } = tailnet.metadata;
  const ref = refTo(tailnet);
  return {
    regarding: { apiVersion: API_VERSION, kind: ref.kind, name, ...(uid === undefined ? {} : { uid }) },
    type: status === 'True' ? ('Normal' as const) : ('Warning' as const),
    reason,
    action: type === 'Authenticated' ? 'Authenticate' : 'Reconcile',
    note: message,
  };
}

/** These messages are part of the contract. */
function logLine(log: Log, tailnet: string, { status, reason, message }: Finding): void {
  if (status === 'True') log.info('authenticated with the control API', { tailnet });
  // Proxies that others run need no control API.
  else if (reason === 'ControlURLMissing') log.info('no control API is configured', { tailnet });
  else if (reason === 'CredentialsInvalid') log.error('invalid OAuth credentials', { tailnet, why: message });
  else if (status === 'False') {
    log.error('failed to authenticate with the control API', { tailnet, reason, why: message });
  }
}
