import { GROUP } from '../../api/generated/kinds.ts';
import type { BackendRef } from '../../api/objects/gateway-api.ts';
import { keyOf } from '../../api/key.ts';
import type { Key } from '../../api/key.ts';
import { isEqual } from '../../api/json.ts';
import { severityOf, within } from '../../api/problem.ts';
import type { Problem } from '../../api/problem.ts';
import { isMeshBackend, refTo } from '../../api/objects/references.ts';
import { healthStatusesOf, statusEntriesOf } from '../../traffic/endpoints/health-status.ts';
import type { EnvoyEndpoint } from '../../traffic/endpoints/load-assignment.ts';
import { poolProblemOf } from '../../traffic/data-path.ts';
import type { ResolvedBackend } from '../../traffic/resolve-route.ts';
import type { ResolvedEndpoint } from '../../traffic/resolve-backend-ref.ts';
import type { Catalog } from '../check/objects.ts';
import { isElsewhere, otherBackendProblem } from '../check/known.ts';
import { isFor, isPoolBroken, localitiesOf, priorityOf, usedEndpoints } from '../check/reach.ts';
import { backendlessIn } from '../check/outcome.ts';
import type { RuleOutcome } from '../check/outcome.ts';
import type { TrafficOf } from '../check/traffic.ts';
import { isExpected } from '../check/undiscovered.ts';
import type { RuleChoice } from './rules.ts';
import { brokenBy, textWithReason } from './step.ts';
import type { Step } from './step.ts';

/** What the Envoys of a Gateway should have for a rule; undefined where it has no MeshEndpoints. */
export function ruleTraffic(
  { route, rule }: RuleChoice,
  gateway: Key,
  trafficOf: TrafficOf,
): RuleOutcome | undefined {
  const traffic = trafficOf(route).find(({ gateways }) => gateways.some(each => keyOf(each) === gateway));
  return traffic?.rules.find(({ rule: { cluster } }) => cluster.rule === 'only' || cluster.rule === rule);
}

/** The steps from a rule to its devices. */
export function backendSteps(
  { route, rule }: RuleChoice,
  ofRule: RuleOutcome | undefined,
  catalog: Catalog,
): readonly Step[] {
  const refs = route.rules[rule]?.backendRefs ?? [];
  const total = refs.reduce((sum, { weight }) => sum + weight, 0);
  const [lacking] = backendlessIn(route, rule);
  if (lacking) return [brokenBy('backend', lacking)];
  const problems = ofRule?.problems ?? [];
  const steps = refs.flatMap((ref, index): readonly Step[] => {
    if (ref.weight === 0) return [];
    const title = `${titleOf(ref)}${shareText(ref.weight, total)}`;
    const at = ['spec', 'rules', rule, 'backendRefs', index];
    if (!isMeshBackend(ref)) {
      const known = problems.find(each => isEqual(each.at, at));
      return [otherBackend(title, known ?? otherBackendProblem(ref, catalog))];
    }
    const reasons = problems.filter(each => isEqual(each.at, at) && severityOf(each) === 'error');
    const whole = reasons.find(({ endpoint }) => endpoint === undefined);
    if (whole) return [brokenBy('backend', whole, `${title}: ${textWithReason(whole)}`)];
    if (!ofRule) return [brokenBy('backend', NOTHING, `${title}: ${NOTHING.text}`)];
    const elsewhere = ofRule.undecided.find(each => isEqual(each.at, at) && isElsewhere(each));
    if (elsewhere) {
      const text = `${title}: not known from these objects: ${textWithReason(elsewhere)}`;
      return [{ is: 'unknown', name: 'backend', text, problem: elsewhere }];
    }
    const backend = ofRule.rule.backends.find(({ place }) => isEqual(place.at, at));
    const skipped = reasons.map(each =>
      brokenBy('endpoint', each, `${each.endpoint}: ${textWithReason(each)}`),
    );
    const found = backend ? endpointSteps(backend, ofRule, catalog) : [];
    const none = brokenBy('endpoint', {
      reason: 'NoEndpoints',
      text: `${titleOf(ref)} has no endpoint for this rule`,
      fix: 'see its status',
    });
    return [
      { is: 'ok', name: 'backend', text: title },
      ...skipped,
      ...(found.length + skipped.length > 0 ? found : [none]),
    ];
  });
  return [...steps, ...stepsBeyond(ofRule)];
}

const NOTHING = {
  reason: 'NoEndpoints',
  text: 'Envoy gets no endpoints for it',
  fix: 'see mesh-gateway trace --all',
} as const;

/** The Services that a policy adds to the rule, where their endpoints are known. */
function stepsBeyond(traffic: RuleOutcome | undefined): readonly Step[] {
  const { levels, policy } = traffic?.rule ?? {};
  return (levels?.beyond ?? []).flatMap(({ index, ref }): readonly Step[] => {
    const [locality] = localitiesOf({ index }, traffic?.localities ?? []);
    if (!locality) return [];
    const of = `${titleOf(ref)} of MeshRoutePolicy ${policy?.metadata.name}`;
    return [
      { is: 'ok', name: 'backend', text: `${of}${rankText(locality.priority)} (not followed further)` },
    ];
  });
}

function shareText(weight: number, total: number): string {
  return weight === total ? '' : `, ${Math.round((100 * weight) / total)} percent`;
}

function titleOf({ group, kind, namespace, name, port }: BackendRef): string {
  const of = group === '' || group === GROUP ? kind : `${kind}.${group}`;
  return `${of} ${namespace}/${name}${port === undefined ? '' : `, port ${port}`}`;
}

/** What is no MeshEndpoints is followed no further. */
function otherBackend(title: string, problem: Problem | undefined): Step {
  return problem
    ? brokenBy('backend', problem, `${title}: ${textWithReason(problem)}`)
    : { is: 'ok', name: 'backend', text: `${title} (not followed further)` };
}

const MAX_ENDPOINTS = 16;

/** Of each endpoint: its health, the mesh pods that carry it, and the device. */
function endpointSteps(backend: ResolvedBackend, traffic: RuleOutcome, catalog: Catalog): readonly Step[] {
  const used = usedEndpoints(backend, traffic);
  const localities = localitiesOf(backend, traffic.localities);
  const steps = used
    .slice(0, MAX_ENDPOINTS)
    .flatMap(each => stepsTo(each, { localities, path: traffic.path }, catalog));
  const more = used.length - MAX_ENDPOINTS;
  return more > 0 ? [...steps, { is: 'ok', name: 'endpoint', text: `and ${more} more` }] : steps;
}

function stepsTo(
  resolved: ResolvedEndpoint,
  { localities, path }: Pick<RuleOutcome, 'localities' | 'path'>,
  catalog: Catalog,
): readonly Step[] {
  const { endpoint, object } = resolved;
  const { name, meshIP, meshFQDN, port, externalTarget } = endpoint;
  if (isExpected(resolved)) {
    const text = `port ${port} of the devices that match spec.tagSelectors, which are known in the tailnet alone`;
    return [{ is: 'unknown', name: 'endpoint', text }];
  }
  const address = externalTarget ?? `${meshIP}:${port}`;
  const found = localities.flatMap(each => each.endpoints).filter(each => isFor(each, resolved));
  const priority = priorityOf(resolved, localities) ?? 0;
  // Envoy gets UNKNOWN for endpoints that are all unhealthy, where its own checks can decide. The operator's verdict is shown.
  const verdict = healthStatusesOf(object, 'UNKNOWN')({ endpoint });
  const title = `${name} at ${address}: ${verdict}`;
  const failed =
    verdict === 'DRAINING' ? DRAINING : verdict === 'UNHEALTHY' ? failureOf(resolved) : undefined;
  const state: Step = failed
    ? brokenBy('endpoint', { ...failed, about: refTo(object), endpoint: name }, `${title}: ${failed.text}`)
    : { is: 'ok', name: 'endpoint', text: `${title}${rankText(priority)}` };
  if (externalTarget !== undefined) return [state];
  return [state, podStep(found, resolved, path, catalog), { is: 'ok', name: 'device', text: meshFQDN }];
}

const DRAINING: Problem = { reason: 'EndpointDraining', text: 'its MeshEndpoints is being deleted' };

/** Why the operator has found an endpoint unhealthy, as its status has it. */
function failureOf({ endpoint, object }: ResolvedEndpoint): Problem {
  const entry = statusEntriesOf(object).get(endpoint.name);
  return {
    reason: entry?.reason ?? 'CheckFailed',
    text: entry?.error ?? 'see status.endpoints',
  };
}

/** Envoy sends requests to a priority only where those before it have too few healthy endpoints. */
function rankText(priority: number): string {
  return priority === 0 ? '' : `, priority ${priority}: for what those before it cannot take`;
}

function podStep(
  found: readonly EnvoyEndpoint[],
  resolved: ResolvedEndpoint,
  path: RuleOutcome['path'],
  catalog: Catalog,
): Step {
  const { tailnet } = resolved;
  const title = `MeshTailnet ${tailnet.metadata.name}`;
  const problem = path === 'Direct' ? undefined : poolProblemOf(tailnet);
  if (problem !== undefined)
    return isPoolBroken(resolved, catalog)
      ? brokenBy('mesh pod', { reason: 'PoolNotReady', ...within(title, problem) })
      : { is: 'unknown', name: 'mesh pod', text: `${title} has no status in these files` };
  const through = found.map(({ proxy, relayedTo, address, port }) =>
    relayedTo ? `relay ${address}:${port}` : proxy ? `${proxy.address}:${proxy.port}` : 'directly',
  );
  return {
    is: 'ok',
    name: 'mesh pod',
    text: `${[...new Set(through)].join(', ') || 'directly'} of ${title}`,
  };
}
