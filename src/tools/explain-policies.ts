import { ENVOY_GATEWAY_GROUP } from '../api/objects/backends.ts';
import { GATEWAY_GROUP } from '../api/objects/gateway-api.ts';
import type { Gateway, ParentRef, Route } from '../api/objects/gateway-api.ts';
import type { Ref, RouteKind } from '../api/key.ts';
import { oldestOf } from '../api/objects/oldest.ts';
import type { BackendTrafficPolicy, PolicyTargetSelector } from '../api/objects/traffic-policy.ts';
import { selectsNamespace } from '../traffic/attachments.ts';
import { isGranted, selects } from '../traffic/backend-refs.ts';
import type { TrafficResources } from '../traffic/traffic-resources.ts';

/** What a policy can target: a route or a Gateway, or with `sectionName` a rule or a listener. */
type Target = Omit<Ref<RouteKind | 'Gateway'>, 'kind'> & {
  readonly kind: RouteKind | 'Gateway';
  readonly sectionName?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** How it is called in the explanation of a rule. */
  readonly title: string;
};

/** The policy of a target, and those that do not apply because it is older. */
type Attached = {
  readonly target: Target;
  readonly policy: BackendTrafficPolicy;
  readonly younger: readonly BackendTrafficPolicy[];
};

/** For users: the BackendTrafficPolicies that apply to a rule of a route at some Gateways, as Envoy Gateway decides it. */
export type ExplainPolicies = (
  route: Route,
  rule: number | 'only',
  gateways: readonly Ref<'Gateway'>[],
) => readonly string[];

/** Creates the function that explains which of the policies apply. */
export function policyExplainer(
  resources: TrafficResources,
  policies: readonly BackendTrafficPolicy[],
): ExplainPolicies {
  const attachedTo = (target: Target): readonly Attached[] => {
    const found = policies.filter(policy => isTarget(policy, target, resources));
    const policy = oldestOf(found);
    return policy ? [{ target, policy, younger: found.filter(each => each !== policy) }] : [];
  };
  return (route, rule, gateways) => {
    const ofRoute = routeTargets(route, rule).flatMap(attachedTo);
    const places = gateways.flatMap(ref => placesAt(route, ref, resources.gateway(ref)));
    const all = (places.length > 0 ? places : [NOWHERE]).map(({ title, targets }) => {
      const attached = [...ofRoute, ...targets.flatMap(attachedTo)];
      return { title, policy: policyText(route.kind, attached), conflicts: attached.flatMap(conflictLines) };
    });
    return [...policyLines(all), ...new Set(all.flatMap(({ conflicts }) => conflicts))];
  };
}

/** A Gateway and perhaps a listener, from where requests reach a route, with the targets there; the closest target is first. */
type Place = { readonly title: string; readonly targets: readonly Target[] };

const NOWHERE: Place = { title: '', targets: [] };

/** The rule, if it has a name, and the route. Envoy Gateway makes one cluster for all rules of an L4 route. */
function routeTargets(route: Route, rule: number | 'only'): readonly Target[] {
  const { name, namespace = '', labels = {} } = route.metadata;
  const target = { kind: route.kind, namespace, name, labels };
  const sectionName = route.rules[rule === 'only' ? 0 : rule]?.name;
  return [
    ...(sectionName === undefined ? [] : [{ ...target, sectionName, title: `rule ${sectionName}` }]),
    { ...target, title: 'the route' },
  ];
}

function placesAt(route: Route, ref: Ref<'Gateway'>, gateway: Gateway | undefined): readonly Place[] {
  const name = `Gateway ${ref.namespace}/${ref.name}`;
  const whole = { ...ref, labels: gateway?.metadata.labels ?? {}, title: name };
  const listeners = listenersOf(route, ref, gateway);
  if (listeners.length === 0) return [{ title: name, targets: [whole] }];
  return listeners.map(sectionName => {
    const title = `listener ${sectionName} of ${name}`;
    return { title, targets: [{ ...whole, sectionName, title }, whole] };
  });
}

/** The protocols of listeners that a kind of route can attach to. */
const LISTENER_PROTOCOLS: Readonly<Record<RouteKind, readonly string[]>> = {
  HTTPRoute: ['HTTP', 'HTTPS'],
  GRPCRoute: ['HTTP', 'HTTPS'],
  TLSRoute: ['TLS'],
  TCPRoute: ['TCP', 'TLS'],
  UDPRoute: ['UDP'],
};

/** The listeners that a route names, or all that it can attach to. */
function listenersOf(route: Route, ref: Ref<'Gateway'>, gateway: Gateway | undefined): readonly string[] {
  const parents = route.parentRefs.filter(
    ({ group, kind, namespace, name }) =>
      group === GATEWAY_GROUP && kind === 'Gateway' && namespace === ref.namespace && name === ref.name,
  );
  const isAttached =
    (listener: Gateway['listeners'][number]) =>
    ({ sectionName, port }: ParentRef) =>
      (sectionName ?? listener.name) === listener.name && (port ?? listener.port) === listener.port;
  return (gateway?.listeners ?? [])
    .filter(({ protocol }) => LISTENER_PROTOCOLS[route.kind].includes(protocol))
    .filter(listener => parents.some(isAttached(listener)))
    .map(({ name }) => name);
}

function isTarget(
  { metadata: { namespace = '' }, targetRefs, targetSelectors }: BackendTrafficPolicy,
  target: Target,
  resources: TrafficResources,
): boolean {
  const isNamed = targetRefs.some(
    ({ group, kind, name, sectionName }) =>
      group === GATEWAY_GROUP &&
      kind === target.kind &&
      name === target.name &&
      sectionName === target.sectionName,
  );
  if (isNamed && namespace === target.namespace) return true;
  if (target.sectionName !== undefined) return false;
  return targetSelectors.some(selector => isSelected(selector, namespace, target, resources));
}

function isSelected(
  { group, kind, namespaces, ...labels }: PolicyTargetSelector,
  namespace: string,
  target: Target,
  resources: TrafficResources,
): boolean {
  if (group !== GATEWAY_GROUP || kind !== target.kind || !selects(labels, target.labels)) return false;
  const isInNamespace = selectsNamespace(resources, namespaces, { namespace }, target.namespace);
  const policy = { group: ENVOY_GATEWAY_GROUP, kind: 'BackendTrafficPolicy', namespace };
  return isInNamespace && isGranted(resources, policy, { ...target, group: GATEWAY_GROUP });
}

/**
 * The closest policy, and those from which Envoy Gateway takes what it does not set:
 *
 *   HTTPRoute, GRPCRoute              none, or with mergeType that of the listener, else that of the Gateway
 *   TLSRoute, TCPRoute, UDPRoute      all others, the closest first
 */
function policyText(kind: RouteKind, attached: readonly Attached[]): string | undefined {
  const [closest, ...others] = attached;
  if (!closest) return undefined;
  const parents = others.filter(({ target }) => target.kind === 'Gateway').slice(0, 1);
  const isHttp = kind === 'HTTPRoute' || kind === 'GRPCRoute';
  const merged = closest.policy.isMerged ? parents : [];
  const chain = [closest, ...(isHttp ? merged : others)];
  return chain.map(({ policy, target }) => `${titleOf(policy)} of ${target.title}`).join(', over ');
}

/** One line if the same applies everywhere, else one for each place. */
function policyLines(
  all: readonly { readonly title: string; readonly policy: string | undefined }[],
): readonly string[] {
  const policies = new Set(all.map(({ policy }) => policy));
  const [only] = policies;
  if (policies.size === 1) return only === undefined ? [] : [`    policy: ${only}`];
  return all.flatMap(({ title, policy }) =>
    policy === undefined ? [] : [`    policy at ${title}: ${policy}`],
  );
}

function conflictLines({ target, policy, younger }: Attached): readonly string[] {
  return younger.map(
    each =>
      `    policy not applied: ${titleOf(each)}: ${titleOf(policy)} is older and targets ${target.title} too`,
  );
}

function titleOf({ metadata: { namespace = '', name } }: BackendTrafficPolicy): string {
  return `BackendTrafficPolicy ${namespace}/${name}`;
}
