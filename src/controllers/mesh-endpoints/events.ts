import { findCondition } from '../../api/conditions.ts';
import type { EndpointStatus, Kinds } from '../../api/generated/types.ts';
import { regardingOf } from '../../store/resources.ts';
import type { ObjectEvent } from '../../store/resources.ts';
import { NOT_CHECKED_YET } from '../../traffic/endpoints/health-status.ts';
import { NOT_ASSIGNED_YET } from './relay-ports.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];
type Status = NonNullable<MeshEndpoints['status']>;
type Described = Pick<ObjectEvent, 'type' | 'reason' | 'action' | 'note'>;

/** The Events of a change of status, which is written. */
export function eventsOf(object: MeshEndpoints, status: Status): readonly ObjectEvent[] {
  const described = [
    ...endpointEvents(object.status?.endpoints ?? [], status.endpoints ?? []),
    ...readyEvents(object.status, status),
    ...conditionEvents('RoutesResolved', 'Resolve', object.status, status),
  ];
  return described.map(each => ({ regarding: regardingOf(object), ...each }));
}

/** The most Events about single endpoints; one more sums up the others. */
const MAX_ENDPOINT_EVENTS = 10;

function endpointEvents(
  before: readonly EndpointStatus[],
  now: readonly EndpointStatus[],
): readonly Described[] {
  const known = new Map(before.map(entry => [entry.name, entry]));
  const changed = now.filter(entry => isTransition(known.get(entry.name), entry));
  const single = changed.slice(0, MAX_ENDPOINT_EVENTS).map(entry => ({
    ...kindOf(entry),
    note: [`endpoint ${entry.name}`, ` (${entry.address})`, entry.error && `: ${entry.error}`].join(''),
  }));
  const others = changed.slice(MAX_ENDPOINT_EVENTS);
  const worst = others.find(({ status }) => status === 'Unhealthy') ?? others[0];
  if (!worst) return single;
  const unhealthy = others.filter(({ status }) => status === 'Unhealthy').length;
  const note = `${others.length} more endpoints changed: ${unhealthy} unhealthy, ${others.length - unhealthy} healthy (see status.endpoints)`;
  return [...single, { ...kindOf(worst), note }];
}

/** A first decision is a transition only if it is Unhealthy: all endpoints of a new object are decided at once. */
function isTransition(before: EndpointStatus | undefined, now: EndpointStatus): boolean {
  if (now.lastChecked === undefined) return false;
  const wasUnhealthy = before?.status === 'Unhealthy' && before.lastChecked !== undefined;
  return now.status === 'Unhealthy' ? !wasUnhealthy : wasUnhealthy;
}

/** The closed list of reasons of Events about endpoints. */
export type EndpointEventReason = 'EndpointHealthy' | 'EndpointUnhealthy';

function kindOf({
  status,
}: EndpointStatus): Omit<Described, 'note'> & { readonly reason: EndpointEventReason } {
  return status === 'Healthy'
    ? { type: 'Normal', reason: 'EndpointHealthy', action: 'Check' }
    : { type: 'Warning', reason: 'EndpointUnhealthy', action: 'Check' };
}

/** None where the object is not ready only because its first checks have no result yet, or it has no relay ports yet. */
function readyEvents(before: Status | undefined, now: Status): readonly Described[] {
  if ([before, now].some(isStarting)) return [];
  return conditionEvents('Ready', 'Reconcile', before, now);
}

function isStarting(status: Status | undefined): boolean {
  const isUndecided =
    status?.endpoints?.some(({ error }) => error === NOT_CHECKED_YET || error === NOT_ASSIGNED_YET) === true;
  return isUndecided && findCondition(status.conditions, 'Ready')?.reason === 'NoHealthyEndpoints';
}

/** That a condition is False, with a reason that is new; or no longer False. */
function conditionEvents(
  type: string,
  action: string,
  earlier: Status | undefined,
  status: Status,
): readonly Described[] {
  const [before, now] = [findCondition(earlier?.conditions, type), findCondition(status.conditions, type)];
  if (!now || (before?.status === now.status && before.reason === now.reason)) return [];
  const isFailure = now.status === 'False';
  if (!isFailure && before?.status !== 'False') return [];
  const isWarning = isFailure && now.reason !== 'Paused';
  return [{ type: isWarning ? 'Warning' : 'Normal', reason: now.reason, action, note: now.message }];
}
