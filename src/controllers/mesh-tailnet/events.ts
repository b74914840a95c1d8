import { findCondition } from '../../api/conditions.ts';
import type { ConditionUpdate } from '../../api/conditions.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { severityOf } from '../../api/problem.ts';
import type { Reason } from '../../api/reasons.ts';
import { ENFORCED } from './enforcement/condition.ts';
import { conditionChanges, conditionEvent } from '../../store/condition-events.ts';
import type { ObjectEvent } from '../../store/resources.ts';
import type { Log } from '../../telemetry/log.ts';

type MeshTailnet = Kinds['MeshTailnet'];
type Status = NonNullable<MeshTailnet['status']>;

/** The Events of a change of status, which is written. */
export function eventsOf(tailnet: MeshTailnet, status: Status): readonly ObjectEvent[] {
  return conditionChanges(tailnet.status, status)
    .filter(({ now }) => isReported(tailnet, now))
    .map(({ now }) =>
      conditionEvent(tailnet, now, {
        type:
          now.status === 'True' && severityOf({ reason: now.reason as Reason }) !== 'warning'
            ? 'Normal'
            : 'Warning',
        action: now.type === 'Authenticated' ? 'Authenticate' : 'Reconcile',
      }),
    );
}

/** Reasons without an Event: another condition has the cause, or it is only a matter of time. */
const UNREPORTED: readonly string[] = ['NotAuthenticated', 'Starting'];

function isReported({ spec }: MeshTailnet, { type, status, reason }: ConditionUpdate): boolean {
  // Proxies that others run need no control API.
  if (spec.pool.mode === 'External' && reason === 'ControlURLMissing') return false;
  // Which it is while pods start.
  if (type === ENFORCED && status === 'Unknown') return false;
  return !UNREPORTED.includes(reason);
}

/** Logs whether a MeshTailnet is authenticated: at the start of the process, and whenever that or its reason changes. */
export function logAuthentication(
  name: string,
  { conditions }: Status,
  memory: { logged: string },
  log: Log,
) {
  const condition = findCondition(conditions, 'Authenticated');
  const key = `${condition?.status} ${condition?.reason}`;
  if (!condition || memory.logged === key) return;
  memory.logged = key;
  logLine(log, name, condition);
}

/** These messages are part of the contract. */
function logLine(log: Log, tailnet: string, { status, reason, message }: ConditionUpdate): void {
  if (status === 'True') log.info('authenticated with the control API', { tailnet });
  // Proxies that others run need no control API.
  else if (reason === 'ControlURLMissing') log.info('no control API is configured', { tailnet });
  else if (reason === 'CredentialsInvalid') log.error('invalid OAuth credentials', { tailnet, why: message });
  else if (status === 'False') {
    log.error('failed to authenticate with the control API', { tailnet, reason, why: message });
  }
}
