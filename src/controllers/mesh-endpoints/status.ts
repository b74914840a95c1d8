import { conditionsOf, findCondition } from '../../api/conditions.ts';
import type { ConditionUpdate } from '../../api/conditions.ts';
import { isEqual } from '../../api/json.ts';
import type { EndpointStatus, EndpointSummary, Kinds } from '../../api/generated/types.ts';
import { keyOf } from '../../api/key.ts';
import { discovers, vipServicesIn } from '../../api/objects/endpoints.ts';
import { metadataSummary } from '../../api/objects/metadata-text.ts';
import { refTo } from '../../api/objects/references.ts';
import type { Verdict } from '../../health/health.ts';
import { discoveredConditionOf, discoveryStatusOf } from './discovery/status.ts';
import { entryOf, isRefreshDue, withoutNewTimes } from './entries.ts';
import type { Input } from './gather.ts';
import type { PlannedEndpoint } from './plan.ts';
import { programmedOf } from './programmed.ts';
import { PAUSED, readyOf } from './ready.ts';
import { resolveRoutes, routesResolvedOf, routeStatusesOf } from './routes.ts';
import { unanchoredMessage } from './unanchored.ts';
import { unseenInMs } from '../../traffic/unseen.ts';
import { vipServicesOf } from './vip-services.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];
type Status = NonNullable<MeshEndpoints['status']>;

/** What decides the status of a MeshEndpoints. */
type StatusInput = Omit<Input, 'relayPorts' | 'inputs' | 'readCa'> & {
  readonly planned: readonly PlannedEndpoint[];
  /** The present verdict about an endpoint; undefined for one that is not checked. */
  readonly verdictOf: (endpoint: string) => Verdict | undefined;
  /** The control API of MeshTailnets that name none. */
  readonly controlURL: string | undefined;
};

/** The status that a MeshEndpoints should have; the stored one if no difference is worth a write. */
export function statusOf(input: StatusInput): Status {
  const { object, stored, planned, verdictOf } = input;
  const entries = planned.map(each => entryOf(each, verdictOf(each.endpoint.name)));
  const found = discoveryStatusOf(stored, input.discovery);
  const complete = completion(input, entries, found);
  const written = stored.status;
  if (!written) return complete(entries, found);
  const withOldTimes = complete(withoutNewTimes(entries, stored), found && withoutNewSync(found, written));
  if (isEqual(written, withOldTimes)) {
    const times = { endpoints: entries, ...(found && { discovery: found }) };
    if (!isRefreshDue(keyOf(refTo(object)), times, stored)) return written;
  }
  const status = complete(entries, found);
  return isEqual(written, status) ? written : status;
}

/** Computes what does not depend on times, and returns the function that makes a status of it. */
function completion(
  input: StatusInput,
  entries: readonly EndpointStatus[],
  found: Status['discovery'],
): (entries: readonly EndpointStatus[], found: Status['discovery']) => Status {
  const { object, stored, discovery, planned, now } = input;
  const { generation } = object.metadata;
  const {
    endpoints: _,
    routes: _routes,
    discovery: _found,
    vipServices: _vip,
    ...rest
  } = object.status ?? {};
  // Without the field, the health of endpoints counts as not known, so they are used.
  const listed = {
    ...rest,
    ...(found && { discovery: found }),
    ...(entries.length > 0 && { endpoints: entries }),
  };
  const resolved = resolveRoutes(object, input.routes, route => input.unusedOf(route, object, listed));
  const routes = routeStatusesOf(resolved, route => unanchoredMessage(route, input.unanchored, now));
  const unseen = unseenInMs(input.unseen, now) > 0 ? undefined : input.unseen;
  const programmed = programmedOf(input.gateways, wasProgrammed(stored, routes), unseen?.route);
  const discovered = discoveredConditionOf(stored, discovery);
  const metadata = metadataSummary(planned.map(({ endpoint }) => endpoint));
  const vip = vipServicesOf(input);
  return (endpoints, shown) => {
    const summary = { ...summaryOf(endpoints), ...(metadata !== '' && { metadata }) };
    const ready = readyOf({ ...input, entries: endpoints, summary, discovered });
    const optional = [discovered, vip?.condition].filter(condition => condition !== undefined);
    const conditions = [ready, ...optional, routesResolvedOf(resolved), programmed];
    return {
      ...rest,
      ...(generation !== undefined && { observedGeneration: generation }),
      conditions: conditionsWith(conditions, stored, now),
      summary,
      ...(endpoints.length > 0 && { endpoints }),
      ...(shown && { discovery: shown }),
      ...(vip && vip.entries.length > 0 && { vipServices: vip.entries }),
      ...(routes && { routes }),
    };
  };
}

/**
 * As it was written, where only the time of the list or the number of all devices differs: in a large tailnet devices that no
 * object selects come and go with each list, and a status may have 1000 endpoints.
 */
function withoutNewSync(found: NonNullable<Status['discovery']>, written: Status) {
  const { lastSync, devices } = written.discovery ?? {};
  return {
    ...found,
    ...(lastSync !== undefined && { lastSync }),
    ...(devices !== undefined && { devices }),
  };
}

function summaryOf(entries: readonly EndpointStatus[]): EndpointSummary {
  const total = entries.length;
  const healthy = entries.filter(({ status }) => status === 'Healthy').length;
  const discovered = entries.filter(({ source }) => source === 'TagSelector').length;
  return {
    total,
    healthy,
    unhealthy: total - healthy,
    static: total - discovered,
    discovered,
    ready: `${healthy}/${total}`,
  };
}

/** Whether Programmed was True for the present generation of an object and its present routes. */
function wasProgrammed({ metadata, status }: MeshEndpoints, routes: Status['routes']): boolean {
  const before = findCondition(status?.conditions, 'Programmed');
  if (before?.status !== 'True' || before.observedGeneration !== (metadata.generation ?? 0)) return false;
  return isEqual(status?.routes, routes);
}

/** The status of a paused object: the one that it has, but for Ready, and without VIP services that it lists no more. */
export function pausedStatusOf(object: MeshEndpoints, now: Date): Status {
  const conditions = conditionsWith([PAUSED], object, now);
  const { vipServices: before = [], ...rest } = object.status ?? {};
  const listed = new Set(vipServicesIn(object).map(({ name }) => name));
  const vipServices = before.filter(({ name }) => listed.has(name));
  const isSame = isEqual(rest.conditions, conditions) && vipServices.length === before.length;
  if (isSame && object.status) return object.status;
  return { ...rest, conditions, ...(vipServices.length > 0 && { vipServices }) };
}

/** The conditions of an object with some replaced. */
function conditionsWith(updates: readonly ConditionUpdate[], object: MeshEndpoints, now: Date) {
  const {
    metadata: { generation },
    status,
  } = object;
  const before = status?.conditions ?? [];
  // These are computed with the others, and are removed with the last selector and the last VIP service.
  const isKept = (type: string) =>
    (type !== 'Discovered' || discovers(object)) &&
    (type !== 'VIPServicesReady' || vipServicesIn(object).length > 0);
  const others = before.filter(({ type }) => isKept(type) && !updates.some(update => update.type === type));
  return [...conditionsOf(updates, before, { generation, now }), ...others];
}
