import type { Kinds } from '../../api/generated/types.ts';
import { keyOf, ROUTE_KINDS } from '../../api/key.ts';
import type { Ref } from '../../api/key.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { metadataText } from '../../api/objects/metadata-text.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import { isMeshRoute, refTo } from '../../api/objects/references.ts';
import { formatProblem, formatWithReason, severityOf, titleOfSubject } from '../../api/problem.ts';
import type { Problem } from '../../api/problem.ts';
import type { SocketAddress } from '../../api/socket-address.ts';
import { Derived } from '../../store/derived.ts';
import type { Tracking } from '../../store/tracking.ts';
import type { EnvoyEndpoint } from '../../traffic/endpoints/load-assignment.ts';
import { targetsOf } from '../../traffic/gateway-settings.ts';
import type { ResolvedEndpoint } from '../../traffic/resolve-backend-ref.ts';
import type { ResolvedRule } from '../../traffic/resolve-route.ts';
import { checkBackendRefs } from '../check/backend-refs.ts';
import type { NamedObjects } from '../check/backend-refs.ts';
import type { Declared } from '../check/objects.ts';
import { together } from '../check/reach.ts';
import type { KnownObjects } from '../check/known.ts';
import type { RouteOutcome, RuleOutcome } from '../check/outcome.ts';
import type { Reach } from '../check/reach.ts';
import { resolverFrom } from '../check/traffic.ts';
import type { TrafficSettings } from '../check/traffic.ts';
import { isExpected } from '../check/undiscovered.ts';
import { problemJson } from '../json.ts';
import { plainText } from '../plain-text.ts';
import { fitting, painted, PLAIN } from '../terminal.ts';
import type { Look } from '../terminal.ts';
import { routePolicySettings } from './route-policies.ts';
import type { Setting } from './setting.ts';
import { trafficPolicySettings } from './traffic-policies.ts';

/** A route with MeshEndpoints among its backends, at Gateways with the same settings for it. */
export type TracedRoute = {
  readonly route: Route;
  readonly outcome: RouteOutcome;
  /** What MeshGateways set for the Gateways. */
  readonly settings: readonly Setting[];
  /** For each rule, what policies set for it. */
  readonly policies: readonly (readonly Setting[])[];
};

/** Follows all routes of a store with the `trafficIndexes`, sorted by name; returns the function that does. */
export function routeTracer(
  tracking: Tracking,
  settings: TrafficSettings,
  known: KnownObjects,
): () => readonly TracedRoute[] {
  const { values, reads, resolve } = resolverFrom(tracking, settings, known);
  const traced = new Derived(tracking, reads, (_all, read): readonly TracedRoute[] => {
    const resources = values.resources(read);
    const ofTrafficPolicies = trafficPolicySettings(resources, read.list('BackendTrafficPolicy'));
    const meshGateways = read.list('MeshGateway');
    const policiesOf = (route: Route, { gateways, rules }: RouteOutcome) =>
      rules.map(({ rule }) => [
        ...ofTrafficPolicies(route, rule.cluster.rule, gateways),
        ...routePolicySettings(rule, resources.routePolicies(refTo(route))),
      ]);
    const routes = ROUTE_KINDS.flatMap((kind): readonly Route[] => read.list(kind));
    return [...routes].sort(byTitle).flatMap(route =>
      resolve(keyOf(refTo(route)), read)
        .filter(({ rules }) => rules.length > 0)
        .map(outcome => ({
          route,
          outcome,
          settings: gatewaySettings(outcome.gateways, meshGateways),
          policies: policiesOf(route, outcome),
        })),
    );
  });
  return () => traced.read('all');
}

function byTitle(one: Route, other: Route): number {
  return titleOfSubject(refTo(one)) < titleOfSubject(refTo(other)) ? -1 : 1;
}

/** How many of the requests for each rule reach an endpoint. */
export function reachesOf({ outcome }: TracedRoute): readonly Reach[] {
  return outcome.rules.map(({ reaches }) => reaches);
}

/** What MeshGateways set for Gateways, and which of them are not applied. */
function gatewaySettings(
  gateways: readonly Ref<'Gateway'>[],
  meshGateways: readonly Kinds['MeshGateway'][],
): readonly Setting[] {
  return gateways.flatMap(gateway => {
    const all = meshGateways.filter(each => targetsOf(each).includes(keyOf(gateway)));
    const oldest = oldestOf(all);
    if (!oldest) return [];
    const { dataPath, healthChecks, routeStatus } = oldest.spec;
    const parts = [
      ...(dataPath ? [`data path ${dataPath.mode}`] : []),
      ...(healthChecks ? [`Envoy's health checks ${healthChecks.envoy}`] : []),
      ...(routeStatus?.anchors === false ? ['no anchors'] : []),
    ];
    const subject = `Gateway ${gateway.namespace}/${gateway.name}`;
    const name = `MeshGateway ${oldest.metadata.name}`;
    const others = all.filter(each => each !== oldest);
    return [
      {
        by: [refTo(oldest)],
        isApplied: true,
        text: `${name} sets for ${subject}: ${parts.join(', ') || 'nothing'}`,
      },
      ...others.map(other => ({
        by: [refTo(other)],
        isApplied: false,
        text: `MeshGateway ${other.metadata.name} is not applied to ${subject}: ${name} decides, as the oldest`,
      })),
    ];
  });
}

/** A route as JSON. */
export function routeJson(traced: TracedRoute) {
  const { route, outcome, settings, policies } = traced;
  const { path, gateways, rules, problems } = outcome;
  return {
    route: refTo(route),
    hostnames: route.hostnames,
    gateways: gateways.map(pathOf),
    dataPath: path,
    settings,
    reaches: together(reachesOf(traced)),
    problems: problems.map(problemJson),
    rules: rules.map((rule, index) => ({
      cluster: rule.rule.cluster.text,
      protocol: rule.rule.protocol,
      reaches: rule.reaches,
      isCheckedByEnvoy: !rule.isHealthCheckOff,
      policies: policies[index] ?? [],
      endpoints: endpointsOf(rule)
        .filter(({ isOfTags }) => !isOfTags)
        .map(({ endpoint, backend, weight, priority, metadata }) => ({
          address: addressOf(endpoint.relayedTo ?? endpoint),
          through: howToReach(endpoint),
          backend,
          weight,
          priority,
          health: endpoint.health,
          metadata,
        })),
      problems: rule.problems.map(problemJson),
      undecided: rule.undecided.map(problemJson),
    })),
  };
}

/** A route for users: each rule, its endpoints and how Envoy reaches them, and what is not used and why. */
export function routeText({ route, outcome, settings, policies }: TracedRoute, look: Look = PLAIN): string {
  const hosts = route.hostnames.length > 0 ? ` for ${route.hostnames.join(', ')}` : '';
  return [
    plainText(`${titleOfSubject(refTo(route))}${hosts} at ${placeOf(outcome.gateways)}`),
    ...outcome.problems.flatMap(each => problemLines(each, 'not attached', look, '  ')),
    ...settings.map(({ text }) => plainText(`  ${text}`)),
    ...outcome.rules.flatMap((rule, index) => ruleLines(rule, policies[index] ?? [], look)),
  ]
    .flatMap(line => fitting(line, INDENT, look))
    .join('\n');
}

/** A route whose backendRefs are meant for MeshEndpoints, and name something else. */
export type StrayRoute = { readonly route: Route; readonly problems: readonly Problem[] };

/** The stray ones of routes: Envoy Gateway answers their requests with 500. */
export function straysIn(routes: readonly Declared[], objects: NamedObjects): readonly StrayRoute[] {
  return routes.flatMap((declared): readonly StrayRoute[] => {
    const route = declared.resource as Route | undefined;
    const problems = !route || isMeshRoute(route) ? [] : checkBackendRefs(declared, objects);
    return route && problems.length > 0 ? [{ route, problems }] : [];
  });
}

/** A stray route as JSON, like any other. */
export function strayJson({ route, problems }: StrayRoute) {
  return {
    route: refTo(route),
    hostnames: route.hostnames,
    gateways: [],
    dataPath: 'Proxy',
    settings: [],
    reaches: 'none',
    problems: problems.map(problemJson),
    rules: [],
  };
}

/** A stray route for users. */
export function strayText({ route, problems }: StrayRoute, look: Look = PLAIN): string {
  const title = `${titleOfSubject(refTo(route))} has no MeshEndpoints among its backends`;
  return [plainText(title), ...problems.flatMap(each => problemLines(each, 'not used', look, '  '))]
    .flatMap(line => fitting(line, INDENT, look))
    .join('\n');
}

function placeOf(gateways: readonly Ref<'Gateway'>[]): string {
  if (gateways.length === 0) return 'no Gateway';
  return `${gateways.length > 1 ? 'Gateways' : 'Gateway'} ${gateways.map(pathOf).join(', ')}`;
}

function pathOf({ namespace, name }: Ref<'Gateway'>): string {
  return `${namespace}/${name}`;
}

const INDENT = 6;

function ruleLines(outcome: RuleOutcome, policies: readonly Setting[], look: Look): readonly string[] {
  const { rule, isHealthCheckOff, isServed, reaches, problems, undecided } = outcome;
  const endpoints = tableOf(
    endpointsOf(outcome).map(({ endpoint, isOfTags, backend, weight, priority, metadata }) => [
      isOfTags ? `devices of spec.tagSelectors:${endpoint.port}` : addressOf(endpoint),
      howToReach(endpoint),
      `backend ${backend}, weight ${weight}, priority ${priority}, ${endpoint.health}`,
      metadataText(metadata, ', '),
    ]),
    look,
  );
  const none = endpoints.length === 0 ? 'no endpoint' : 'no endpoint can take traffic';
  const [onlyMesh, mixed] = CONSEQUENCES[rule.protocol];
  return [
    `  cluster ${plainText(rule.cluster.text)}: ${rule.protocol}${isHealthCheckOff ? ', not checked by Envoy' : ''}`,
    ...policies.map(({ text }) => plainText(`    ${text}`)),
    ...endpoints.map(plainText),
    ...(isServed || reaches === 'unknown'
      ? []
      : [`    ${painted(none, 'error', look)}: ${rule.isMixed ? mixed : onlyMesh}`]),
    ...problems.filter(isCause).flatMap(each => problemLines(each, problemTitle(each, rule), look)),
    ...undecided.flatMap(each => problemLines(each, 'not known from these objects', look)),
  ];
}

/** Whether a problem is more than that no endpoint can take traffic, which the consequence has. */
function isCause({ reason }: Problem): boolean {
  return reason !== 'NoHealthyEndpoints';
}

/** On a terminal the fix is on a line of its own. */
function problemLines(problem: Problem, title: string, look: Look, indent = '    '): readonly string[] {
  const { fix, ...rest } = problem;
  const isApart = look.columns !== undefined && fix !== undefined;
  const shown = isApart ? rest : problem;
  const text = problem.reason === 'PoolNotReady' ? formatProblem(shown) : formatWithReason(shown);
  return [
    `${indent}${painted(plainText(title), severityOf(problem), look)}: ${plainText(text)}`,
    ...(isApart ? [`${indent}  ${painted('fix:', 'fix', look)} ${plainText(fix)}`] : []),
  ];
}

function problemTitle({ reason, about, endpoint }: Problem, { policy }: ResolvedRule): string {
  if (reason === 'PoolNotReady' && about) return `not ready: ${titleOfSubject(about)}`;
  if (about?.kind === 'MeshRoutePolicy' || reason === 'ServiceInRule' || reason === 'DividedRule')
    return `MeshRoutePolicy ${policy?.metadata.name}`;
  return `not used${endpoint === undefined ? '' : ` (endpoint ${endpoint})`}`;
}

const REQUESTS = [
  'requests are answered with 503',
  'the other backends of the rule get all requests',
] as const;

/** What becomes of traffic for endpoints that cannot take any, and for those beside other backends. */
const CONSEQUENCES = {
  'HTTP/1.1': REQUESTS,
  'HTTP/2': REQUESTS,
  TCP: ['connections are closed', 'the other backends of the rule get all connections'],
  UDP: ['datagrams are dropped', 'the other backends of the rule get all datagrams'],
} as const;

/** The endpoints that Envoy gets for a rule. */
function endpointsOf({ localities, rule }: RuleOutcome) {
  const resolved = resolvedIn(rule);
  return localities.flatMap(({ backend, weight, priority, endpoints }) =>
    endpoints.map(endpoint => {
      const of = resolved(backend, endpoint);
      const { metadata = {} } = of?.endpoint ?? {};
      return { endpoint, backend, weight, priority, metadata, isOfTags: of !== undefined && isExpected(of) };
    }),
  );
}

/** The endpoints of MeshEndpoints in a rule, by backend and address. */
function resolvedIn({
  backends,
}: ResolvedRule): (backend: number, sent: EnvoyEndpoint) => ResolvedEndpoint | undefined {
  const idOf = (backend: number, { address, port }: SocketAddress, externalTarget?: string) =>
    `${backend} ${externalTarget ?? `${address} ${port}`}`;
  const found = new Map<string, ResolvedEndpoint>();
  for (const { index, endpoints } of backends)
    for (const resolved of endpoints) {
      const { meshIP, port, externalTarget } = resolved.endpoint;
      found.set(idOf(index, { address: meshIP, port }, externalTarget), resolved);
    }
  return (backend, sent) => found.get(idOf(backend, sent.relayedTo ?? sent, sent.externalTarget));
}

function howToReach({ proxy, relayedTo, externalTarget }: EnvoyEndpoint): string {
  if (externalTarget !== undefined) return `directly, as ${externalTarget}`;
  if (relayedTo) return `relays to ${addressOf(relayedTo)}`;
  return proxy ? `through ${proxy.address}:${proxy.port}` : 'directly';
}

function addressOf({ address, port }: SocketAddress): string {
  return `${address.includes(':') ? `[${address}]` : address}:${port}`;
}

/** A line for each row, with the cells of a column below each other; two where a terminal is too narrow. */
function tableOf(rows: readonly (readonly string[])[], { columns }: Look): readonly string[] {
  const widths = [...(rows[0] ?? []).keys()].map(column =>
    Math.max(...rows.map(row => row[column]?.length ?? 0)),
  );
  const lineOf = (row: readonly string[], first = 0) =>
    row
      .map((cell, column) => cell.padEnd(widths[first + column] ?? 0))
      .join('  ')
      .trimEnd();
  const lines = rows.map(row => `    ${lineOf(row)}`);
  if (columns === undefined || lines.every(line => line.length <= columns)) return lines;
  return rows.flatMap(row => [`    ${lineOf(row.slice(0, 2))}`, `      ${lineOf(row.slice(2), 2)}`]);
}
