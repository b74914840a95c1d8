import { conditionsOf, findCondition } from '../../api/conditions.ts';
import type { ConditionUpdate } from '../../api/conditions.ts';
import type { Kinds, ServiceCleanup } from '../../api/generated/types.ts';
import { isEqual } from '../../api/json.ts';
import type { Ref } from '../../api/key.ts';
import { refTo } from '../../api/objects/references.ts';
import { conditionOf, titleOfSubject } from '../../api/problem.ts';
import type { ProblemAt, Subject } from '../../api/problem.ts';
import { hasReported, lastTranslationOf } from '../../traffic/translation-report.ts';
import type { Input, Target } from './gather.ts';

type MeshGateway = Kinds['MeshGateway'];
type Status = NonNullable<MeshGateway['status']>;
type Decided = Extract<Target, { readonly is: 'decided' }>;

/** The status of a MeshGateway, with the result of a cleanup whose annotation is still there. */
export function statusOf(
  { object, targets, endpoints, services }: Input,
  now: Date,
  cleanup?: ServiceCleanup,
): Status {
  const { metadata, spec, status } = object;
  const decided = targets.filter((each): each is Decided => each.is === 'decided');
  const programmed = findCondition(status?.conditions, 'Programmed');
  const wasProgrammed =
    programmed?.status === 'True' && programmed.observedGeneration === metadata.generation;
  const isAuto = (spec.healthChecks?.envoy ?? 'Auto') === 'Auto';
  const updates = [
    acceptedOf(refTo(object), targets),
    programmedOf(decided, wasProgrammed),
    endpointsReadyOf(endpoints),
    servicesReadyOf(services),
  ];
  const entries = servicesIn(services);
  const lastCleanup = cleanup ?? completed(status?.lastCleanup);
  const lastTranslation = decided
    .flatMap(({ gateway, binding }) => (binding && lastTranslationOf(gateway, binding)) ?? [])
    .sort()
    .at(-1);
  return {
    observedGeneration: metadata.generation ?? 0,
    conditions: conditionsOf(updates, status?.conditions, { generation: metadata.generation, now }),
    gateways: targets.map(gatewayOf),
    routes: {
      total: new Set(decided.flatMap(({ routes }) => routes.all)).size,
      mesh: new Set(decided.flatMap(({ routes }) => routes.mesh)).size,
    },
    endpoints: {
      total: endpoints.reduce((sum, { total }) => sum + total, 0),
      healthy: endpoints.reduce((sum, { healthy }) => sum + healthy, 0),
    },
    ...(isAuto && {
      crowdedBackends: {
        total: decided.reduce((sum, { crowded }) => sum + crowded.total, 0),
        checkedByOperator: decided.reduce((sum, { crowded }) => sum + crowded.checkedByOperator, 0),
      },
    }),
    ...(entries.length > 0 && { services: entries }),
    ...(lastCleanup && { lastCleanup }),
    ...(lastTranslation !== undefined && { lastTranslation }),
  };
}

/** The status once the annotation that asked for the cleanup is removed. */
export function withCompleted(status: Status): Status {
  const lastCleanup = completed(status.lastCleanup);
  return { ...status, ...(lastCleanup && { lastCleanup }) };
}

function completed(cleanup: ServiceCleanup | undefined): ServiceCleanup | undefined {
  if (!cleanup) return undefined;
  const { inProgress: _inProgress, ...result } = cleanup;
  return result;
}

function gatewayOf(target: Target): NonNullable<Status['gateways']>[number] {
  const { name } = target.gateway;
  switch (target.is) {
    case 'decided':
      return { name, reason: 'Accepted' };
    case 'of-other':
      return { name, reason: 'Conflicted', decidedBy: target.decidedBy };
    case 'missing':
      return { name, reason: 'TargetNotFound' };
  }
}

/*
 * The condition Accepted, by the targets:
 *
 *   an older MeshGateway decides about one   False, Conflicted
 *   one does not exist                       False, TargetNotFound
 *   else                                     True, Accepted
 *
 * The settings apply to the other targets in any case.
 */
function acceptedOf(about: Subject, targets: readonly Target[]): ConditionUpdate {
  const conflicts = targets.flatMap(each => (each.is === 'of-other' ? [each] : []));
  const missing = targets.filter(({ is }) => is === 'missing');
  const [conflict] = conflicts;
  const problems: ProblemAt<'MeshGateway Accepted'>[] = [];
  if (conflict) {
    const alike = conflicts.filter(({ decidedBy }) => decidedBy === conflict.decidedBy);
    const text = `${namesOf(alike)}: MeshGateway ${conflict.decidedBy} decides, as the oldest that targets it`;
    const fix = 'remove the Gateway from spec.targetRefs of one of them';
    problems.push({ reason: 'Conflicted', about, text, fix });
  }
  if (missing.length > 0) {
    const text = `${namesOf(missing)}: no such Gateway in this namespace`;
    problems.push({ reason: 'TargetNotFound', about, text, fix: 'create it, or correct spec.targetRefs' });
  }
  const message = `decides about ${namesOf(targets)}`;
  return conditionOf('MeshGateway Accepted', problems, { reason: 'Accepted', message });
}

/*
 * The condition Programmed, by the Gateways that it decides about and that have mesh routes:
 *
 *   none                                                     Unknown, NoMeshRoutes
 *   each has its settings in its MeshBinding, and either
 *     Envoy Gateway has translated that                      True
 *     or had, when the object was as it is                   True: a route or endpoint has changed
 *   else                                                     Unknown, NotReported
 */
function programmedOf(decided: readonly Decided[], wasProgrammed: boolean): ConditionUpdate {
  const used = decided.filter(({ routes }) => routes.mesh.length > 0);
  const waiting = used.find(each => !isProgrammed(each, wasProgrammed));
  const problems: ProblemAt<'MeshGateway Programmed'>[] = [];
  if (used.length === 0) {
    const text = 'no route to MeshEndpoints attaches to a Gateway that this object decides about';
    problems.push({ reason: 'NoMeshRoutes', text });
  }
  if (waiting) {
    const text = `Envoy Gateway has not reported in MeshBinding ${waiting.gateway.name} that it has translated these settings`;
    const fix =
      'check that it runs and has policyResources with kind MeshBinding; without a cluster it never does';
    problems.push({ reason: 'NotReported', about: waiting.gateway, text, fix });
  }
  const message = `Envoy Gateway has translated ${namesOf(used)} with these settings`;
  return conditionOf('MeshGateway Programmed', problems, { reason: 'Programmed', message });
}

function isProgrammed({ gateway, settings, binding }: Decided, wasProgrammed: boolean): boolean {
  if (!binding || !isEqual(binding.spec.settings, settings)) return false;
  return wasProgrammed || hasReported(gateway, binding);
}

/*
 * The condition EndpointsReady, by the MeshEndpoints of these routes:
 *
 *   none has an endpoint                     Unknown, NoEndpoints
 *   one has endpoints, but no healthy one    False, NoHealthyEndpoints
 *   else                                     True, EndpointsReady
 */
function endpointsReadyOf(endpoints: Input['endpoints']): ConditionUpdate {
  const used = endpoints.filter(({ total }) => total > 0);
  const [first, ...others] = used.filter(({ healthy }) => healthy === 0);
  const problems: ProblemAt<'MeshGateway EndpointsReady'>[] = [];
  if (used.length === 0) {
    const text = 'no route of these Gateways has an endpoint of a MeshEndpoints that it may use';
    problems.push({ reason: 'NoEndpoints', text });
  }
  if (first) {
    const text = `${titleOf(first, others)}: no endpoint is healthy, so routes to it fail; its condition Ready has the reason`;
    problems.push({ reason: 'NoHealthyEndpoints', about: first.object, text });
  }
  const message = 'each MeshEndpoints of the routes of these Gateways has a healthy endpoint';
  return conditionOf('MeshGateway EndpointsReady', problems, { reason: 'EndpointsReady', message });
}

/*
 * The condition ServicesReady, by the condition VIPServicesReady of each MeshEndpoints with VIP services that it decides about:
 *
 *   there is none                            Unknown, NoServices
 *   one is False                             False, ServicesNotReady
 *   one is not known yet                     Unknown, NotReconciled
 *   else                                     True, ServicesReady
 */
function servicesReadyOf(services: Input['services']): ConditionUpdate {
  const [first, ...others] = services.filter(({ ready }) => ready?.status === 'False');
  const waiting = services.find(({ ready }) => ready?.status !== 'True');
  const problems: ProblemAt<'MeshGateway ServicesReady'>[] = [];
  if (services.length === 0) {
    const text = 'no MeshEndpoints that this object decides about lists VIP services';
    problems.push({ reason: 'NoServices', text });
  }
  if (waiting) {
    const text = `${titleOf(waiting)}: the state of its VIP services is not known yet`;
    problems.push({ reason: 'NotReconciled', about: waiting.object, text });
  }
  if (first) {
    const text = `${titleOf(first, others)}: VIP services are not ready (${first.ready?.reason}); its condition VIPServicesReady has the reason`;
    problems.push({ reason: 'ServicesNotReady', about: first.object, text });
  }
  const message = 'the VIP services that this object decides about are registered and served';
  return conditionOf('MeshGateway ServicesReady', problems, { reason: 'ServicesReady', message });
}

function titleOf({ object }: { readonly object: Ref }, others: readonly unknown[] = []): string {
  return `${titleOfSubject(object)}${others.length > 0 ? ` and ${others.length} more` : ''}`;
}

function placeOf({ object: { namespace, name } }: Input['services'][number]): string {
  return `${namespace}/${name}`;
}

/** As in the schema. */
const MAX_SERVICES = 100;

/** Those that are not registered first, since a list has a limit. */
function servicesIn(services: Input['services']): NonNullable<Status['services']> {
  return services
    .flatMap(each =>
      each.entries.map(({ name, status, vipAddress, owners: [owner, ...consumers] = [] }) => ({
        name,
        object: placeOf(each),
        state: status,
        ...(owner && { owner }),
        ...(consumers.length > 0 && { consumers }),
        ...(vipAddress !== undefined && { vipAddress }),
      })),
    )
    .sort((one, other) => (orderOf(one) < orderOf(other) ? -1 : 1))
    .slice(0, MAX_SERVICES);
}

function orderOf({ name, object, state }: NonNullable<Status['services']>[number]): string {
  return `${state === 'Registered' ? 1 : 0} ${object} ${name}`;
}

function namesOf(targets: readonly Pick<Target, 'gateway'>[]): string {
  return `${targets.length > 1 ? 'Gateways' : 'Gateway'} ${targets.map(({ gateway }) => gateway.name).join(', ')}`;
}
