import { findCondition } from '../../api/conditions.ts';
import type { Condition, EndpointStatus, Kinds, VipServiceStatus } from '../../api/generated/types.ts';
import { discoveredEntriesOf } from '../../api/objects/endpoints.ts';
import { conditionChanges, conditionEvent } from '../../store/condition-events.ts';
import { regardingOf } from '../../store/resources.ts';
import type { ObjectEvent } from '../../store/resources.ts';
import type { Reason } from '../../api/reasons.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];
type Status = NonNullable<MeshEndpoints['status']>;
type Described = Pick<ObjectEvent, 'type' | 'reason' | 'action' | 'note'>;

/** The Events of a change of status, which is written. */
export function eventsOf(object: MeshEndpoints, status: Status): readonly ObjectEvent[] {
  const described = [
    ...deviceEvents(discoveredEntriesOf(object), discoveredEntriesOf({ ...object, status })),
    ...endpointEvents(object.status?.endpoints ?? [], status.endpoints ?? []),
    ...serviceEvents(object.status?.vipServices ?? [], status.vipServices ?? []),
  ];
  return [
    ...described.map(each => ({ regarding: regardingOf(object), ...each })),
    ...conditionEvents(object, status),
  ];
}

/** One Event about all devices that have become endpoints, and one about all that no longer are. */
function deviceEvents(
  before: readonly EndpointStatus[],
  now: readonly EndpointStatus[],
): readonly Described[] {
  const eventOf = (reason: DeviceEventReason, verb: string, changed: readonly EndpointStatus[]) => {
    if (changed.length === 0) return [];
    const note = `${changed.length} ${changed.length === 1 ? 'device' : 'devices'} ${verb}: ${namesOf(changed)}`;
    return [{ type: 'Normal', reason, action: 'Discover', note } as const];
  };
  return [
    ...eventOf('DevicesDiscovered', 'discovered', entriesWithout(now, before)),
    ...eventOf('DevicesLeft', 'left', entriesWithout(before, now)),
  ];
}

/** The entries of devices that are not among others. */
function entriesWithout(
  entries: readonly EndpointStatus[],
  others: readonly EndpointStatus[],
): readonly EndpointStatus[] {
  const known = new Set(others.map(({ deviceID }) => deviceID));
  return entries.filter(({ deviceID }) => !known.has(deviceID));
}

/** The most devices that an Event names. */
const MAX_NAMED = 10;

function namesOf(entries: readonly EndpointStatus[]): string {
  const named = entries.slice(0, MAX_NAMED).map(({ name, address }) => `${name} (${address})`);
  const others = entries.length - named.length;
  return [...named, ...(others > 0 ? [`and ${others} more`] : [])].join(', ');
}

/** The closed list of reasons of Events about devices. */
export type DeviceEventReason = 'DevicesDiscovered' | 'DevicesLeft';

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

/** The warnings of VIP services that are new. */
function serviceEvents(
  before: readonly VipServiceStatus[],
  now: readonly VipServiceStatus[],
): readonly Described[] {
  const known = new Map(before.map(({ name, warnings = [] }) => [name, warnings]));
  return now.flatMap(({ name, warnings = [] }) => {
    const old = new Set(known.get(name)?.map(({ reason }) => reason));
    const fresh = warnings.filter(({ reason }) => !old.has(reason));
    return fresh.map(({ reason, message }): Described => {
      const note = `VIP service ${name}: ${message}`;
      return { type: 'Warning', reason, action: 'Register', note };
    });
  });
}

/** The conditions that are reported, and the actions of their Events. */
const ACTIONS: Readonly<Record<string, string>> = {
  Ready: 'Reconcile',
  Discovered: 'Discover',
  RoutesResolved: 'Resolve',
  VIPServicesReady: 'Register',
};

/** That a condition is False, with a reason that is new; or no longer False. */
function conditionEvents(object: MeshEndpoints, status: Status): readonly ObjectEvent[] {
  const isUndecided = [object.status, status].some(isStarting);
  return conditionChanges(object.status, status).flatMap(({ before, now }) => {
    const action = ACTIONS[now.type];
    if (action === undefined || (now.type === 'Ready' && isUndecided)) return [];
    if (now.status !== 'False' && before?.status !== 'False') return [];
    if (now.type === 'VIPServicesReady' && !isAboutRefusal(before, now)) return [];
    if (isAboutList(now) || (isAboutList(before) && now.status !== 'False')) return [];
    return [conditionEvent(object, now, { type: typeOf(now), action })];
  });
}

/** A VIP service is refused, or none is any longer. That one is being registered, or not served, is in status alone. */
function isAboutRefusal(before: Condition | undefined, now: Condition): boolean {
  const isRefusal = (condition: Condition | undefined) =>
    ['Conflict', 'Failed', 'NotSupported'].includes(condition?.reason ?? '');
  return isRefusal(now) || (isRefusal(before) && now.status === 'True');
}

/** There is no list of devices, or no new one: for all objects of a tailnet, an Event of its MeshTailnet reports it. */
function isAboutList(condition: Condition | undefined): boolean {
  const reasons: readonly Reason[] = ['Stale', 'Unreachable'];
  return condition?.type === 'Discovered' && reasons.some(reason => reason === condition.reason);
}

function typeOf(now: Condition): ObjectEvent['type'] {
  return now.status === 'False' && now.reason !== 'Paused' ? 'Warning' : 'Normal';
}

/** The object is not ready only because its first checks have no result yet, or it has no relay ports yet. */
function isStarting(status: Status | undefined): boolean {
  const reasons = (status?.endpoints ?? []).map(({ reason }) => reason);
  const isUndecided = reasons.includes('NotCheckedYet') || reasons.includes('RelayPortPending');
  return isUndecided && findCondition(status?.conditions, 'Ready')?.reason === 'NoHealthyEndpoints';
}
