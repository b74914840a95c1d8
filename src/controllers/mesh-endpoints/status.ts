import { conditionsOf, findCondition } from '../../api/conditions.ts';
import type { ConditionUpdate } from '../../api/conditions.ts';
import { isEqual } from '../../api/json.ts';
import type { EndpointStatus, EndpointSummary, Kinds } from '../../api/generated/types.ts';
import { keyOf } from '../../api/key.ts';
import { refTo } from '../../api/objects/references.ts';
import type { Verdict } from '../../health/health.ts';
import { entryOf, isRefreshDue, withoutNewTimes } from './entries.ts';
import type { Input } from './gather.ts';
import type { PlannedEndpoint } from './plan.ts';
import { programmedOf } from './programmed.ts';
import { PAUSED, readyOf } from './ready.ts';
import { resolveRoutes, routesResolvedOf, routeStatusesOf } from './routes.ts';
import { unanchoredMessage } from './unanchored.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];
type Status = NonNullable<MeshEndpoints['status']>;

/** What decides the status of a MeshEndpoints. */
type StatusInput = Omit<Input, 'relayPorts' | 'inputs' | 'readCa'> & {
  readonly planned: readonly PlannedEndpoint[];
  /** The present verdict about an endpoint; undefined for one that is not checked. */
  readonly verdictOf: (endpoint: string) => Verdict | undefined;
};

/** The status that a MeshEndpoints is to have; the very same where nothing differs that is worth a write. */
export function statusOf(input: StatusInput): Status {
  const { object, planned, verdictOf, now } = input;
  const { generation } = object.metadata;
  const entries = planned.map(each => entryOf(each, verdictOf(each.endpoint.name)));
  const { endpoints: _endpoints, routes: _routes, ...rest } = object.status ?? {};
  // Without the field, the health of endpoints counts as not known, so that they are used.
  const listed = { ...rest, ...(entries.length === 0 ? {} : { endpoints: entries }) };
  const resolved = resolveRoutes(object, input.routes, route => input.unusedOf(route, object, listed));
  const routes = routeStatusesOf(resolved, route => unanchoredMessage(route, input.unanchored, now));
  const programmed = programmedOf(input.gateways, wasProgrammed(object, routes));
  const withEntries = (endpoints: readonly EndpointStatus[]): Status => {
    const summary = summaryOf(endpoints);
    const ready = readyOf({ ...input, entries: endpoints, summary });
    return {
      ...rest,
      ...(generation === undefined ? {} : { observedGeneration: generation }),
      conditions: conditionsWith([ready, routesResolvedOf(resolved), programmed], object, now),
      summary,
      ...(endpoints.length === 0 ? {} : { endpoints }),
      ...(routes ? { routes } : {}),
    };
  };
  const unchanged = withEntries(withoutNewTimes(entries, object));
  const isSame = object.status !== undefined && isEqual(object.status, unchanged);
  if (isSame && !isRefreshDue(keyOf(refTo(object)), entries, object)) return object.status;
  const status = withEntries(entries);
  return object.status && isEqual(object.status, status) ? object.status : status;
}

function summaryOf(entries: readonly EndpointStatus[]): EndpointSummary {
  const total = entries.length;
  const healthy = entries.filter(({ status }) => status === 'Healthy').length;
  return { total, healthy, unhealthy: total - healthy, ready: `${healthy}/${total}` };
}

/** Whether Programmed was True for the present generation of an object and its present routes. */
function wasProgrammed({ metadata, status }: MeshEndpoints, routes: Status['routes']): boolean {
  const before = findCondition(status?.conditions, 'Programmed');
  if (before?.status !== 'True' || before.observedGeneration !== (metadata.generation ?? 0)) return false;
  return isEqual(status?.routes, routes);
}

/** The status of a paused object: the one that it has, but for Ready. */
export function pausedStatusOf(object: MeshEndpoints, now: Date): Status {
  const conditions = conditionsWith([PAUSED], object, now);
  const isSame = object.status !== undefined && isEqual(object.status.conditions, conditions);
  return isSame ? object.status : { ...object.status, conditions };
}

/** The conditions of an object with some replaced. */
function conditionsWith(updates: readonly ConditionUpdate[], object: MeshEndpoints, now: Date) {
  const {
    metadata: { generation },
    status,
  } = object;
  const before = status?.conditions ?? [];
  const others = before.filter(({ type }) => !updates.some(update => update.type === type));
  return [...conditionsOf(updates, before, { generation, now }), ...others];
}
