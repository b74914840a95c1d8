import { findCondition } from '../../api/conditions.ts';
import { isOverHttp, keyOf } from '../../api/key.ts';
import { ENVOY_GATEWAY_GROUP } from '../../api/objects/backends.ts';
import type { BackendRef, Route } from '../../api/objects/gateway-api.ts';
import { isMeshBackend, refTo } from '../../api/objects/references.ts';
import { distinct } from '../../api/problem.ts';
import type { Problem } from '../../api/problem.ts';
import { withArticle } from '../../api/text.ts';
import { backendRefsOf, meshEndpointsRefOf } from '../../traffic/backend-refs.ts';
import type { RouteBackendRef } from '../../traffic/backend-refs.ts';
import { poolProblemOf, proxiesOf } from '../../traffic/data-path.ts';
import type { RouteTraffic, RuleTraffic } from '../../traffic/endpoints/route-traffic.ts';
import { endpointsOfService, isResolved } from '../../traffic/other-backends.ts';
import { failoverSupportOf, problemsOfRule } from '../../traffic/policy/problems.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';
import { notSeen } from '../../traffic/unseen.ts';
import { isDecided, otherBackendProblem, undecided } from './known.ts';
import type { KnownObjects } from './known.ts';
import { takenFrom } from './listeners.ts';
import { isPoolBroken, isServed, reachOfRule, together } from './reach.ts';
import type { CarriedTraffic, Reach } from './reach.ts';

/** What becomes of the requests for a rule. */
export type RuleOutcome = CarriedTraffic & {
  readonly reaches: Reach;
  /** Whether a MeshEndpoints of the rule, or a Service of its policy, serves requests. */
  readonly isServed: boolean;
  /** What is wrong, as far as the objects are enough to decide it. */
  readonly problems: readonly Problem[];
  /** What is wrong if these are all objects. */
  readonly undecided: readonly Problem[];
};

/** What becomes of the requests for a route at Gateways. */
export type RouteOutcome = Omit<RouteTraffic, 'rules'> & {
  readonly rules: readonly RuleOutcome[];
  /** What is wrong with parentRefs that attach the route to nothing. */
  readonly problems: readonly Problem[];
};

/** Decides what becomes of the requests for a route. */
export function outcomesOf(
  route: Route,
  traffic: readonly RouteTraffic[],
  resources: TrafficResources,
  known: KnownObjects,
): readonly RouteOutcome[] {
  const problems = known.parentProblems(route);
  const unseen = unseenProblem(route, resources);
  const isDetached = problems.length > 0 && problems.length >= route.parentRefs.length;
  return traffic.flatMap(({ path, gateways: all, rules }) =>
    byImplementation(all, route, resources).map(({ gateways, foreign }) => ({
      path,
      gateways,
      problems,
      rules: rules.map((rule): RuleOutcome => {
        const whole = foreign ?? unseen;
        if (whole) return unserved({ ...rule, path }, whole);
        const outcome = outcomeOf({ ...rule, path }, gateways, route, resources, known);
        if (isDetached) return { ...outcome, reaches: 'none' };
        return known.has('Gateway')
          ? outcome
          : { ...outcome, reaches: together([outcome.reaches, 'unknown']) };
      }),
    })),
  );
}

type Gateways = RouteTraffic['gateways'];

/** The Gateways of Envoy Gateway together, and each of another implementation with the problem that it is one. */
function byImplementation(
  all: Gateways,
  route: Route,
  resources: TrafficResources,
): readonly { readonly gateways: Gateways; readonly foreign?: Problem }[] {
  const foreign = all.flatMap(gateway => {
    const problem = foreignProblem(gateway, route, resources);
    return problem ? [{ gateways: [gateway], foreign: problem }] : [];
  });
  const own = all.filter(gateway => !foreign.some(({ gateways }) => gateways.includes(gateway)));
  return own.length === 0 && foreign.length > 0 ? foreign : [{ gateways: own }, ...foreign];
}

/** Why a Gateway sends nothing to MeshEndpoints: it is of another implementation. */
function foreignProblem(
  { namespace, name }: Gateways[number],
  route: Route,
  resources: TrafficResources,
): Problem | undefined {
  const gateway = resources.gateway({ kind: 'Gateway', namespace, name });
  const ofGateway = gateway && resources.gatewayClass(gateway.gatewayClassName);
  if (!ofGateway || ofGateway.controllerName.startsWith(ENVOY_GATEWAY)) return undefined;
  return {
    reason: 'NotEnvoyGateway',
    about: refTo(route),
    at: ['spec', 'parentRefs'],
    text: `Gateway ${namespace}/${name} is of GatewayClass ${ofGateway.metadata.name}, whose controller ${ofGateway.controllerName} is not Envoy Gateway and knows no MeshEndpoints`,
    fix: 'name a Gateway of Envoy Gateway',
  };
}

/** With which the names of its controllers begin. */
const ENVOY_GATEWAY = 'gateway.envoyproxy.io/';

/** That Envoy Gateway does not see the MeshEndpoints of a route, as the operator has found out. */
function unseenProblem(route: Route, resources: TrafficResources): Problem | undefined {
  if (!route.lacksBackend || !isOverHttp(route.kind)) return undefined;
  const refs = route.rules.flatMap(({ backendRefs }) => backendRefs).filter(isMeshBackend);
  const isReported = refs.some(ref => {
    const { conditions } = resources.meshEndpoints(meshEndpointsRefOf({ ref }))?.status ?? {};
    return findCondition(conditions, 'Programmed')?.reason === 'NotSeen';
  });
  return isReported ? notSeen(refTo(route)) : undefined;
}

function unserved(traffic: CarriedTraffic, problem: Problem): RuleOutcome {
  return { ...traffic, localities: [], reaches: 'none', isServed: false, problems: [problem], undecided: [] };
}

function outcomeOf(
  traffic: CarriedTraffic,
  gateways: Gateways,
  route: Route,
  resources: TrafficResources,
  known: KnownObjects,
): RuleOutcome {
  const supports = gateways.map(gateway => failoverSupportOf(resources, [traffic.rule], gateway));
  const problems = distinct<Problem>([
    ...backendlessIn(route, indexOf(traffic)),
    ...traffic.unused,
    ...problemsOfRule(traffic.rule),
    ...supports.flatMap(each => (each.is === 'unsupported' ? [each.problem] : [])),
    ...brokenPools(traffic, known),
  ]);
  const ofServices = problemsOfServices(traffic, route, resources, known);
  const taken = takenFrom(route, new Set(gateways.map(keyOf)), resources, known.ownersOfListeners());
  const decided = [
    ...(taken ? [taken.problem] : []),
    ...problems.filter(each => isDecided(each, known)),
    ...ofServices,
  ];
  const ofRule = reachOfRule({ route, rule: indexOf(traffic) }, { ...traffic, ofServices }, known);
  const reaches = taken && ofRule !== 'none' ? taken.reaches : ofRule;
  const isLost = (reaches === 'none' || reaches === 'some') && decided.length === 0;
  return {
    ...traffic,
    reaches,
    isServed: isServed(traffic, known),
    problems: isLost ? [...decided, noneHealthy(traffic, route)] : decided,
    undecided: problems.filter(each => !decided.includes(each)).map(each => undecided(each, known)),
  };
}

/** The index of a rule in its route; of TCP and UDP Envoy Gateway uses one. */
function indexOf({ rule: { cluster } }: RuleTraffic): number {
  return cluster.rule === 'only' ? 0 : cluster.rule;
}

/** That a rule has no backend with a weight. */
export function backendlessIn(route: Route, rule: number): readonly Problem[] {
  const { backendRefs = [] } = route.rules[rule] ?? {};
  if (backendRefs.some(({ weight }) => weight > 0)) return [];
  const place = { about: refTo(route), at: ['spec', 'rules', rule] };
  return [
    backendRefs.length === 0
      ? { ...place, reason: 'NoBackends', text: 'has no backendRefs', fix: 'add one' }
      : { ...place, reason: 'NoWeight', text: 'all backendRefs have weight 0', fix: 'raise one' },
  ];
}

/** What keeps requests from the Services of a rule. */
function problemsOfServices(
  { rule: { cluster } }: RuleTraffic,
  route: Route,
  resources: TrafficResources,
  known: KnownObjects,
): readonly Problem[] {
  const refs = backendRefsOf(route, cluster) ?? [];
  return refs.flatMap((each): readonly Problem[] => {
    const { ref, place } = each;
    if (ref.weight === 0 || isMeshBackend(ref)) return [];
    const isLost = () => known.has('EndpointSlice') && !isResolved(resources, each, cluster.rule);
    const problem =
      otherBackendProblem(ref, known) ??
      unresolvedName(each, refs, known) ??
      (isLost() ? lostService(each, resources) : undefined);
    return problem ? [{ ...problem, ...place }] : [];
  });
}

/** The first backend decides whether Envoy Gateway's one cluster resolves host names; with addresses among the others each has its own. */
function unresolvedName(
  { ref, route }: RouteBackendRef,
  refs: readonly RouteBackendRef[],
  known: KnownObjects,
): Problem | undefined {
  const hasNames = ({ group, namespace, name }: BackendRef) =>
    group === ENVOY_GATEWAY_GROUP &&
    known.backend({ kind: 'Backend', namespace, name })?.hasHostNames === true;
  const weighted = refs.filter(each => each.ref.weight > 0).map(each => each.ref);
  const [first] = weighted;
  if (!isOverHttp(route.kind) || !first || !isMeshBackend(first) || !hasNames(ref)) return undefined;
  if (!weighted.every(each => isMeshBackend(each) || hasNames(each))) return undefined;
  return {
    reason: 'MixedBackends',
    text: `Backend ${ref.namespace}/${ref.name} has host names, which Envoy Gateway does not resolve where a MeshEndpoints comes first`,
    fix: 'name it first in backendRefs',
  };
}

/** Why Envoy Gateway sends nothing to a Service that exists. */
function lostService({ ref, route }: RouteBackendRef, resources: TrafficResources): Problem | undefined {
  const { group, kind, namespace, name } = ref;
  if (group !== '' || kind !== 'Service' || !isOverHttp(route.kind)) return undefined;
  const title = `Service ${namespace}/${name}`;
  if (endpointsOfService(resources, ref).length > 0) {
    const text = `no ReferenceGrant lets ${withArticle(route.kind)} of namespace ${route.metadata.namespace} refer to ${title}`;
    return { reason: 'RefNotPermitted', text, fix: `create one in namespace ${namespace}` };
  }
  const fix = 'start its pods, or give the reference weight 0';
  return {
    reason: 'NoEndpoints',
    text: `${title} has no endpoints, so its share of the requests fails`,
    fix,
  };
}

/** MeshTailnets that have a proxy address, which no mesh pod serves now. */
function brokenPools({ rule: { backends }, path }: CarriedTraffic, known: KnownObjects): readonly Problem[] {
  if (path === 'Direct') return [];
  const tailnets = backends.flatMap(({ endpoints }) => {
    const first = endpoints.find(({ endpoint }) => endpoint.externalTarget === undefined);
    return first && isPoolBroken(first, known) ? [first.tailnet] : [];
  });
  return [...new Set(tailnets)].flatMap((tailnet): readonly Problem[] => {
    const why = proxiesOf(tailnet).are === 'known' && poolProblemOf(tailnet);
    return why ? [{ reason: 'PoolNotReady', about: refTo(tailnet), ...why }] : [];
  });
}

function noneHealthy(traffic: RuleTraffic, route: Route): Problem {
  const at = ['spec', 'rules', indexOf(traffic)];
  const text = 'no endpoint of the MeshEndpoints in the rule can take traffic';
  const fix = 'status.endpoints of its MeshEndpoints has the error of each';
  return { reason: 'NoHealthyEndpoints', about: refTo(route), at, text, fix };
}
