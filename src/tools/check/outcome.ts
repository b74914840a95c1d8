import { isEqual } from '../../api/json.ts';
import { isOverHttp } from '../../api/key.ts';
import type { Key, Ref, ResourceKind } from '../../api/key.ts';
import type { Service } from '../../api/objects/backends.ts';
import type { BackendRef, Route } from '../../api/objects/gateway-api.ts';
import { isMeshBackend, refTo } from '../../api/objects/references.ts';
import { distinct, severityOf } from '../../api/problem.ts';
import type { Problem } from '../../api/problem.ts';
import type { Reason } from '../../api/reasons.ts';
import { backendRefsOf } from '../../traffic/backend-refs.ts';
import type { RouteBackendRef } from '../../traffic/backend-refs.ts';
import { poolProblemOf, proxiesOf } from '../../traffic/data-path.ts';
import { healthStatusesOf } from '../../traffic/endpoints/health-status.ts';
import type { HealthStatus } from '../../traffic/endpoints/health-status.ts';
import type { EnvoyEndpoint, EnvoyLocality } from '../../traffic/endpoints/load-assignment.ts';
import type { ReadObjects } from '../../store/resources.ts';
import type { RouteTraffic, RuleTraffic } from '../../traffic/endpoints/route-traffic.ts';
import { endpointsOfService, isResolved } from '../../traffic/other-backends.ts';
import { failoverSupportOf, problemsOfRule } from '../../traffic/policy/problems.ts';
import { isRequired } from '../../traffic/policy/route-policy.ts';
import type { ResolvedEndpoint } from '../../traffic/resolve-backend-ref.ts';
import type { ResolvedBackend } from '../../traffic/resolve-route.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';

/** How many of the requests reach an endpoint; unknown where the objects that decide it could not be read. */
export type Reach = 'all' | 'some' | 'none' | 'unknown';

/** What several parts of the requests together reach. */
export function together(parts: readonly Reach[]): Reach {
  const known = parts.filter(part => part !== 'unknown');
  if (known.length === 0) return 'unknown';
  if (known.every(part => part === 'all')) return 'all';
  return known.every(part => part === 'none') ? 'none' : 'some';
}

/** How much of what exists the objects are. */
export type KnownObjects = {
  /** Whether those of a kind have the status that the operator writes. */
  readonly hasStatus: (kind: 'MeshTailnet' | 'MeshEndpoints') => boolean;
  /** Whether those of a kind are all. */
  readonly has: (kind: ResourceKind) => boolean;
  /** Whether an object is there, but is not valid. */
  readonly isInvalid: (key: Key) => boolean;
  /** Whether an object finds devices whose ports and protocols their tags decide, and none is known yet. */
  readonly hasUnknownEndpoints: (key: Key) => boolean;
  readonly service: (ref: Ref<'Service'>) => Service | undefined;
};

/** That a store has all objects, with their status. */
export function everythingIn(read: ReadObjects): KnownObjects {
  return {
    hasStatus: () => true,
    has: () => true,
    isInvalid: () => false,
    hasUnknownEndpoints: () => false,
    service: ref => read.get(ref),
  };
}

/** What Envoys get for a rule, and how they reach the mesh. */
type CarriedTraffic = RuleTraffic & Pick<RouteTraffic, 'path'>;

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
export type RouteOutcome = Omit<RouteTraffic, 'rules'> & { readonly rules: readonly RuleOutcome[] };

/** Decides what becomes of the requests for a route. */
export function outcomesOf(
  route: Route,
  traffic: readonly RouteTraffic[],
  resources: TrafficResources,
  known: KnownObjects,
): readonly RouteOutcome[] {
  return traffic.flatMap(({ path, gateways: all, rules }) =>
    byImplementation(all, route, resources).map(({ gateways, foreign }) => ({
      path,
      gateways,
      rules: rules.map(rule =>
        foreign
          ? unserved({ ...rule, path }, foreign)
          : outcomeOf({ ...rule, path }, gateways, route, resources, known),
      ),
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
    ...weightless(traffic, route),
    ...traffic.unused,
    ...problemsOfRule(traffic.rule),
    ...supports.flatMap(each => (each.is === 'service-in-rule' ? [each.problem] : [])),
    ...brokenPools(traffic, known),
  ]);
  const ofServices = problemsOfServices(traffic, route, resources, known);
  const decided = [...problems.filter(each => isDecided(each, known)), ...ofServices];
  const reaches = reachOfRule({ route, rule: indexOf(traffic) }, { ...traffic, ofServices }, known);
  const isLost = (reaches === 'none' || reaches === 'some') && decided.length === 0;
  return {
    ...traffic,
    reaches,
    isServed: candidatesOf(traffic, known).some(each => each.isMesh && each.isCarried && isUsable(each)),
    problems: isLost ? [...decided, noneHealthy(traffic, route)] : decided,
    undecided: problems.filter(each => !decided.includes(each)),
  };
}

/** The index of a rule in its route; of TCP and UDP Envoy Gateway uses one. */
function indexOf({ rule: { cluster } }: RuleTraffic): number {
  return cluster.rule === 'only' ? 0 : cluster.rule;
}

function weightless(traffic: RuleTraffic, route: Route): readonly Problem[] {
  const rule = indexOf(traffic);
  const { backendRefs = [] } = route.rules[rule] ?? {};
  if (backendRefs.some(({ weight }) => weight > 0)) return [];
  const at = ['spec', 'rules', rule];
  return [
    { reason: 'NoWeight', about: refTo(route), at, text: 'all backendRefs have weight 0', fix: 'raise one' },
  ];
}

/** What keeps requests from the Services of a rule. */
function problemsOfServices(
  { rule: { cluster } }: RuleTraffic,
  route: Route,
  resources: TrafficResources,
  known: KnownObjects,
): readonly Problem[] {
  return (backendRefsOf(route, cluster) ?? []).flatMap((each): readonly Problem[] => {
    const { ref, place } = each;
    if (ref.weight === 0 || isMeshBackend(ref)) return [];
    const isLost = () => known.has('EndpointSlice') && !isResolved(resources, each, cluster.rule);
    const problem = serviceProblem(ref, known) ?? (isLost() ? lostService(each, resources) : undefined);
    return problem ? [{ ...problem, ...place }] : [];
  });
}

/** Why Envoy Gateway sends nothing to a Service that exists. */
function lostService({ ref, route }: RouteBackendRef, resources: TrafficResources): Problem | undefined {
  const { group, kind, namespace, name } = ref;
  if (group !== '' || kind !== 'Service' || !isOverHttp(route.kind)) return undefined;
  const title = `Service ${namespace}/${name}`;
  if (endpointsOfService(resources, ref).length > 0) {
    const text = `no ReferenceGrant lets a ${route.kind} of namespace ${route.metadata.namespace} refer to ${title}`;
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

/** What is elsewhere if there is none of the kind, or what only a status has, which objects in files need not have. */
const NEEDS: Readonly<Partial<Record<Reason, ResourceKind>>> = {
  BackendNotFound: 'MeshEndpoints',
  TailnetNotFound: 'MeshTailnet',
  NamespaceNotAllowed: 'Namespace',
  CertificateNotFound: 'ConfigMap',
  ServiceInRule: 'EnvoyProxy',
};

const NEEDS_STATUS: Readonly<Partial<Record<Reason, 'MeshTailnet' | 'MeshEndpoints'>>> = {
  ProxyUnknown: 'MeshTailnet',
  RelayPortMissing: 'MeshEndpoints',
  ExternalTargetNotResolved: 'MeshEndpoints',
};

/** Whether what is not decided depends on objects, or devices, that are elsewhere. */
export function isElsewhere({ reason }: Problem): boolean {
  return NEEDS[reason] !== undefined || reason === 'PortNotFound';
}

/** Whether the objects are enough to decide that something is wrong. */
function isDecided(problem: Problem & { readonly object?: Key }, known: KnownObjects): boolean {
  const { reason, object } = problem;
  const [kind, status] = [NEEDS[reason], NEEDS_STATUS[reason]];
  if ((kind && !known.has(kind)) || (status && !known.hasStatus(status))) return false;
  if (object === undefined) return true;
  if (reason === 'PortNotFound') return !known.hasUnknownEndpoints(object);
  return reason !== 'BackendNotFound' || !known.isInvalid(object);
}

/** How many of the requests for a rule reach an endpoint. What is no MeshEndpoints is followed no further. */
export function reachOfRule(
  { route, rule }: { readonly route: Route; readonly rule: number },
  traffic: (CarriedTraffic & { readonly ofServices: readonly Problem[] }) | undefined,
  known: KnownObjects,
): Reach {
  const { backendRefs: refs = [], mirrors = [] } = route.rules[rule] ?? {};
  if (mirrors.some(isMeshBackend)) return 'none';
  const ofCluster = traffic ? reachOfCluster(traffic, known) : 'none';
  const parts = refs.flatMap((ref, index): readonly Reach[] => {
    if (ref.weight === 0) return [];
    const at = ['spec', 'rules', rule, 'backendRefs', index];
    if (!isMeshBackend(ref)) {
      const isLost = traffic?.ofServices.some(each => isEqual(each.at, at)) ?? serviceProblem(ref, known);
      return [isLost ? 'none' : 'all'];
    }
    const unused = (traffic?.unused ?? []).filter(
      each => each.endpoint === undefined && isEqual(each.at, at) && severityOf(each) === 'error',
    );
    if (unused.some(each => isDecided(each, known))) return ['none'];
    return [unused.some(isElsewhere) ? 'unknown' : ofCluster];
  });
  return parts.length === 0 ? 'none' : together(parts);
}

/** Why a Service does not get the requests of a reference, as far as is known. */
export function serviceProblem(
  { group, kind, namespace, name, port }: BackendRef,
  known: KnownObjects,
): Problem | undefined {
  if (group !== '' || kind !== 'Service' || !known.has('Service')) return undefined;
  const service = known.service({ kind, namespace, name });
  const title = `Service ${namespace}/${name}`;
  if (!service) {
    const fix = 'create it, or correct the reference';
    return { reason: 'BackendNotFound', text: `${title} does not exist`, fix };
  }
  const ports = service.ports.map(each => each.port);
  if (port === undefined || ports.includes(port)) return undefined;
  const fix = `use one that it has (${ports.join(', ') || 'none'})`;
  return { reason: 'PortNotFound', text: `port ${port} is not a port of ${title}`, fix };
}

function isUnused(
  { unused }: RuleTraffic,
  known: KnownObjects,
  at: readonly (string | number)[],
  name?: string,
) {
  return unused.some(
    each =>
      each.endpoint === name &&
      isEqual(each.at, at) &&
      severityOf(each) === 'error' &&
      isDecided(each, known),
  );
}

/** An endpoint that Envoy may send requests to. */
type Candidate = {
  /** Whether it is of a MeshEndpoints, or of a Service that the policy of the rule adds. */
  readonly isMesh: boolean;
  readonly priority: number;
  readonly health: HealthStatus;
  /** Whether a request that Envoy sends to it gets there. */
  readonly isCarried: boolean;
};

/** Envoy sends requests to the first priority with an endpoint that is not unhealthy, in equal shares as far as this matters. */
function reachOfCluster(traffic: CarriedTraffic, known: KnownObjects): Reach {
  const usable = candidatesOf(traffic, known).filter(isUsable);
  const first = Math.min(...usable.map(({ priority }) => priority));
  const used = usable.filter(({ priority }) => priority === first);
  return used.length === 0 ? 'none' : together(used.map(({ isCarried }) => (isCarried ? 'all' : 'none')));
}

function isUsable({ health }: Candidate): boolean {
  return health !== 'UNHEALTHY' && health !== 'DRAINING';
}

function candidatesOf(traffic: CarriedTraffic, known: KnownObjects): readonly Candidate[] {
  const { rule, localities, path } = traffic;
  const own = new Set(rule.backends.map(({ index }) => index));
  const beyond = new Set(rule.levels?.beyond.map(({ index }) => index));
  const others = localities
    .filter(({ backend }) => !own.has(backend))
    .flatMap(({ backend, priority, endpoints }) =>
      endpoints.map(({ health }) => ({ isMesh: beyond.has(backend), priority, health, isCarried: true })),
    );
  const mesh = rule.backends
    .filter(({ place, ref }) => ref.weight > 0 && !isUnused(traffic, known, place.at))
    .flatMap(backend =>
      usedEndpoints(backend, traffic)
        .filter(({ endpoint: { name } }) => !isUnused(traffic, known, backend.place.at, name))
        .map(resolved => candidateOf(resolved, localitiesOf(backend, localities), path, known)),
    );
  return [...mesh, ...others];
}

function candidateOf(
  resolved: ResolvedEndpoint,
  localities: readonly EnvoyLocality[],
  path: CarriedTraffic['path'],
  known: KnownObjects,
): Candidate {
  const { endpoint, object } = resolved;
  const sent = localities.flatMap(({ endpoints }) => endpoints).find(each => isFor(each, resolved));
  return {
    isMesh: true,
    priority: priorityOf(resolved, localities) ?? endpoint.priority,
    // Envoy gets UNKNOWN for endpoints that are all unhealthy, where its own checks can decide: here the operator's verdict counts.
    health: sent?.health === 'UNHEALTHY' ? sent.health : healthStatusesOf(object, 'UNKNOWN')({ endpoint }),
    isCarried: path === 'Direct' || endpoint.externalTarget !== undefined || !isPoolBroken(resolved, known),
  };
}

/** The endpoints of a backend that the policy of the rule leaves. */
export function usedEndpoints(
  { endpoints }: ResolvedBackend,
  { rule }: RuleTraffic,
): readonly ResolvedEndpoint[] {
  return endpoints.filter(({ endpoint }) => isRequired(rule.policy, endpoint));
}

/** The localities of a backend. */
export function localitiesOf(
  { index }: Pick<ResolvedBackend, 'index'>,
  localities: readonly EnvoyLocality[],
): readonly EnvoyLocality[] {
  return localities.filter(({ backend }) => backend === index);
}

/** The priority with which Envoy gets an endpoint; undefined where it does not get it. */
export function priorityOf(
  resolved: ResolvedEndpoint,
  localities: readonly EnvoyLocality[],
): number | undefined {
  return localities.find(({ endpoints }) => endpoints.some(each => isFor(each, resolved)))?.priority;
}

/** Whether Envoy dials this for an endpoint. */
export function isFor(sent: EnvoyEndpoint, { endpoint: { meshIP, port } }: ResolvedEndpoint): boolean {
  const target = sent.relayedTo ?? sent;
  return target.address === meshIP && target.port === port;
}

/** Whether the mesh pods of an endpoint are known not to carry requests. */
export function isPoolBroken({ tailnet }: Pick<ResolvedEndpoint, 'tailnet'>, known: KnownObjects): boolean {
  return (
    poolProblemOf(tailnet) !== undefined && (known.hasStatus('MeshTailnet') || tailnet.status !== undefined)
  );
}
