import type { Gateway, Listener, Route } from '../../api/objects/gateway-api.ts';
import { isOverHttp, keyOf } from '../../api/key.ts';
import type { Key, ResourceKind } from '../../api/key.ts';
import { placeOf } from '../../api/objects/oldest.ts';
import { refTo } from '../../api/objects/references.ts';
import type { Problem } from '../../api/problem.ts';
import type { Reason } from '../../api/reasons.ts';
import { attachmentsOf } from '../../traffic/attachments.ts';
import type { Attachment } from '../../traffic/attachments.ts';
import { isRoute } from '../check/backend-refs.ts';
import { Catalog, titleOf } from '../check/objects.ts';
import type { Declarations, Declared } from '../check/objects.ts';
import { reachOfRule } from '../check/reach.ts';
import type { RuleOutcome } from '../check/outcome.ts';
import type { Reach } from '../check/reach.ts';
import { trafficIn } from '../check/traffic.ts';
import type { TrafficOf, TrafficSettings } from '../check/traffic.ts';
import { byAge } from '../route-age.ts';
import { backendSteps, ruleTraffic } from './backends.ts';
import type { TracedRequest } from './request.ts';
import { chooseRule, describeRules } from './rules.ts';
import type { RuleAction, RuleChoice, WrittenRoute } from './rules.ts';
import { brokenBy, textWithReason } from './step.ts';
import type { Step } from './step.ts';

/** The way of a request through a Gateway. */
export type Way = {
  readonly gateway: string;
  /** What the rule for the request does with it; undefined without one, as at other Gateways that have the same port. */
  readonly action: RuleAction | undefined;
  /** How many such requests reach an endpoint. */
  readonly reaches: Reach;
  readonly steps: readonly Step[];
  /** The last of the steps, if the request was to be sent. */
  readonly answer?: Step;
};

/** A way by the objects. */
export type TracedWay = Way & {
  /** What Envoys should have for the rule; undefined where there is none, or it has no MeshEndpoints. */
  readonly traffic: RuleOutcome | undefined;
};

/** Follows a request through each Gateway that has a listener for it, or through one. */
export function trace(
  declarations: Declarations,
  request: TracedRequest,
  from: string | undefined,
  settings: TrafficSettings = {},
): readonly TracedWay[] {
  const catalog = new Catalog(declarations);
  const gateways = catalog
    .all()
    .flatMap(({ resource }) => (resource?.kind === 'Gateway' ? [resource] : []))
    .filter(gateway => from === undefined || from === placeOf(gateway));
  const world = worldOf(declarations, catalog, settings);
  const all = gateways.map(gateway => ({ gateway, listeners: listenersFor(gateway, request, world) }));
  const open = all.filter(({ listeners }) => listeners.length > 0);
  if (open.length === 0) {
    const step = unlessUnread(['Gateway'], noListener(request, gateways, from), catalog);
    const isElsewhere = !catalog.isCluster && !catalog.has('Gateway') && gateways.length === 0;
    return [{ gateway: '', ...endedBy([], isElsewhere ? { ...step, is: 'unknown' } : step) }];
  }
  return open.map(({ gateway, listeners }) => ({
    gateway: placeOf(gateway),
    ...wayThrough(gateway, listeners, request, world, catalog),
  }));
}

/** A step that is broken because there is no object of these kinds for it; unknown where some could not be read. */
function unlessUnread(kinds: readonly ResourceKind[], step: Step, catalog: Catalog): Step {
  const unread = kinds.filter(kind => catalog.isCluster && !catalog.has(kind)).map(kind => `${kind}s`);
  if (unread.length === 0) return step;
  const text = `you have no right to list ${unread.join(' and ')} in all namespaces`;
  return { is: 'unknown', name: step.name, text, problem: { reason: 'NotRead', text } };
}

/** The routes, where they attach, and what Envoys should have for them. */
type World = {
  readonly routes: readonly WrittenRoute[];
  readonly attachments: ReadonlyMap<Key, readonly Attachment[]>;
  readonly trafficOf: TrafficOf;
};

function worldOf({ objects }: Declarations, catalog: Catalog, settings: TrafficSettings): World {
  const routes = objects
    .filter(isRoute)
    .flatMap(({ resource, fields }: Declared) => (resource ? [{ route: resource as Route, fields }] : []));
  const resources = catalog.attachmentResources;
  const attachments = new Map(
    routes.map(({ route }) => [keyOf(refTo(route)), attachmentsOf(route, resources)] as const),
  );
  return { routes, attachments, trafficOf: trafficIn(catalog, settings).of };
}

const PROTOCOLS = { HTTP: ['HTTP'], HTTPS: ['HTTPS', 'TLS'], connection: ['TCP', 'TLS', 'UDP'] } as const;

/** The listeners of a Gateway, and of ListenerSets of it, with which a request can begin: of these, those of the closest hostname. */
function listenersFor(gateway: Gateway, request: TracedRequest, { attachments }: World): readonly Listener[] {
  const key = keyOf(refTo(gateway));
  const others = [...attachments.values()]
    .flat()
    .filter(each => keyOf(each.gateway) === key && each.parent.kind === 'ListenerSet')
    .flatMap(({ parent }) => parent.listeners);
  const fitting = [...new Set([...gateway.listeners, ...others])].filter(
    ({ port, protocol, hostname }) =>
      port === request.port &&
      PROTOCOLS[request.over].some(each => each === protocol) &&
      (hostname === undefined || covers(hostname, request.host)),
  );
  const closest = Math.max(...fitting.map(({ hostname }) => closeness(hostname)));
  return fitting.filter(({ hostname }) => closeness(hostname) === closest);
}

/** A whole name is closer than a wildcard, and a longer one than a shorter one. */
function closeness(hostname: string | undefined): number {
  if (hostname === undefined) return 0;
  return hostname.startsWith('*.') ? hostname.length : 1000 + hostname.length;
}

function covers(hostname: string, host: string): boolean {
  return hostname.startsWith('*.') ? host.endsWith(hostname.slice(1)) : hostname === host;
}

function noListener(
  { over, host, port }: TracedRequest,
  gateways: readonly Gateway[],
  from: string | undefined,
): Step {
  if (gateways.length === 0) {
    const why =
      from === undefined
        ? { text: 'there is no Gateway', fix: 'create one, or name the files that have it' }
        : { text: `Gateway ${from} does not exist`, fix: 'give NAMESPACE/NAME of one that does' };
    return brokenBy('gateway', { reason: 'NoGateway', ...why });
  }
  const present = gateways
    .flatMap(gateway =>
      gateway.listeners.map(
        ({ name, protocol, port: at, hostname }) =>
          `${name} of ${placeOf(gateway)} (${protocol} at port ${at}${hostname === undefined ? '' : ` for ${hostname}`})`,
      ),
    )
    .slice(0, MAX_NAMED);
  const wanted =
    over === 'connection' ? `connections at port ${port}` : `${over} at port ${port} for ${host}`;
  return brokenBy('listener', {
    reason: 'NoListener',
    text: `no listener is for ${wanted}`,
    fix: `add one, or use an existing one: ${present.join(', ') || 'none'}`,
  });
}

const MAX_NAMED = 8;

const ROUTES_OF = {
  HTTP: ['HTTPRoute', 'GRPCRoute'],
  HTTPS: ['HTTPRoute', 'GRPCRoute', 'TLSRoute'],
  connection: ['TLSRoute', 'TCPRoute', 'UDPRoute'],
} as const;

function wayThrough(
  gateway: Gateway,
  listeners: readonly Listener[],
  request: TracedRequest,
  { routes, attachments, trafficOf }: World,
  catalog: Catalog,
): Omit<TracedWay, 'gateway'> {
  const names = listeners.map(({ name, protocol, port }) => `${name} (${protocol}, port ${port})`);
  const first: Step = {
    is: 'ok',
    name: 'listener',
    text: `${names.join(', ')} of Gateway ${placeOf(gateway)}`,
  };
  const key = keyOf(refTo(gateway));
  const attached = routes.filter(
    ({ route }) =>
      ROUTES_OF[request.over].some(kind => kind === route.kind) &&
      attachments
        .get(keyOf(refTo(route)))
        ?.some(each => keyOf(each.gateway) === key && each.listeners.some(one => listeners.includes(one))),
  );
  // Listeners that are as close have one hostname.
  const chosen = ruleFor(request, attached, listeners[0]?.hostname);
  if ('problem' in chosen) {
    const lost =
      chosen.problem.reason === 'NoRuleMatches' ? undefined : detachedRoute(request, routes, catalog);
    if (lost) return endedBy([first], brokenBy('rule', lost.problem, lost.text));
    return endedBy([first], unlessUnread(ROUTES_OF[request.over], brokenBy('rule', chosen.problem), catalog));
  }
  const { route, rule, text, action } = chosen;
  const place = `spec.rules[${rule}] of ${titleOf(route)}${text === '' ? '' : `: ${text}`}`;
  const before: readonly Step[] = [first, { is: 'ok', name: 'rule', text: place }];
  if (action !== 'forward')
    return { steps: [...before, ANSWERS[action]], traffic: undefined, action, reaches: 'all' };
  const traffic = ruleTraffic(chosen, key, trafficOf);
  const ofGateway = traffic?.problems.find(({ reason }) => OF_GATEWAY.includes(reason));
  if (ofGateway)
    return { ...endedBy(before, brokenBy('gateway', ofGateway, textWithReason(ofGateway))), action };
  return {
    steps: [...before, ...backendSteps(chosen, traffic, catalog)],
    traffic,
    action,
    reaches: traffic?.reaches ?? reachOfRule(chosen, undefined, catalog),
  };
}

/** Why a Gateway sends nothing to any MeshEndpoints of a route. */
const OF_GATEWAY: readonly Reason[] = ['NotEnvoyGateway', 'NotSeen'];

/** Envoy answers itself: such a rule has no backends. */
const ANSWERS: Readonly<Record<Exclude<RuleAction, 'forward'>, Step>> = {
  redirect: { is: 'ok', name: 'answer', text: 'a redirect, by the filter RequestRedirect' },
  answer: { is: 'ok', name: 'answer', text: 'by an HTTPRouteFilter (not followed further)' },
};

/** Why a route that is for the request attaches to no Gateway. */
function detachedRoute(
  { over, host }: TracedRequest,
  routes: readonly WrittenRoute[],
  catalog: Catalog,
): { readonly problem: Problem; readonly text: string } | undefined {
  for (const { route } of routes) {
    if (!ROUTES_OF[over].some(kind => kind === route.kind) || closestOf(route, host, undefined) < 0) continue;
    const [problem, ...others] = catalog.parentProblems(route);
    if (!problem || others.length + 1 < route.parentRefs.length) continue;
    const about = refTo(route);
    return {
      problem: { about, ...problem },
      text: `${titleOf(route)} is not attached: ${textWithReason(problem)}`,
    };
  }
  return undefined;
}

/** A way that leads no further, or whose further steps are not known. */
function endedBy(before: readonly Step[], last: Step): Omit<TracedWay, 'gateway'> {
  const reaches = last.is === 'unknown' ? 'unknown' : 'none';
  return { steps: [...before, last], traffic: undefined, action: undefined, reaches };
}

/** Envoy looks for the closest hostname first, and then among its rules alone. */
function ruleFor(
  request: TracedRequest,
  attached: readonly WrittenRoute[],
  hostname: string | undefined,
): RuleChoice | { readonly problem: Problem } {
  const none: Problem = {
    reason: 'NoRouteAttached',
    text: 'no route attaches to it',
    fix: 'name it in parentRefs of one, and see what check reports',
  };
  if (attached.length === 0) return { problem: none };
  const named = attached.map(written => ({
    written,
    closest: closestOf(written.route, request.host, hostname),
  }));
  const closest = Math.max(...named.map(each => each.closest));
  if (closest < 0) {
    const all = attached.flatMap(({ route }) => route.hostnames.map(name => `${name} (${titleOf(route)})`));
    const fix = `add it to hostnames of one: they have ${all.slice(0, MAX_NAMED).join(', ')}`;
    return { problem: { reason: 'NoRouteForHost', text: `no route is for ${request.host}`, fix } };
  }
  const ofHost = named.filter(each => each.closest === closest).map(({ written }) => written);
  const overHttp = ofHost.filter(({ route }) => isOverHttp(route.kind));
  if (overHttp.length === 0) {
    const [first] = [...ofHost].sort((one, other) => byAge(one.fields, other.fields));
    return first ? { route: first.route, rule: 0, text: '', action: 'forward' } : { problem: none };
  }
  const best = chooseRule(request, overHttp);
  if (best) return best;
  const present = describeRules(ofHost).slice(0, MAX_NAMED);
  return {
    problem: {
      reason: 'NoRuleMatches',
      text: `no rule for ${request.host} matches ${request.method} ${request.path} (404)`,
      fix: `they match ${present.map(text => `"${text}"`).join(', ')}`,
    },
  };
}

/**
 * How close the hostnames of a route are to a host, of which only what a listener has too counts: for that of
 * web.example.com, *.example.com is as close. -1 where none covers the host. Routes of TCP and UDP have none.
 */
function closestOf({ hostnames }: Route, host: string, ofListener: string | undefined): number {
  const atLeast = closeness(ofListener);
  if (hostnames.length === 0) return atLeast;
  const covering = hostnames.filter(name => covers(name, host)).map(closeness);
  return covering.length === 0 ? -1 : Math.max(atLeast, ...covering);
}
