import { ENVOY_GATEWAY_GROUP } from '../api/objects/backends.ts';
import { GATEWAY_GROUP } from '../api/objects/gateway-api.ts';
import type { Route } from '../api/objects/gateway-api.ts';
import { keyOf } from '../api/key.ts';
import type { Ref, RouteKind } from '../api/key.ts';
import { oldestOf } from '../api/objects/oldest.ts';
import type { BackendTrafficPolicy, PolicyTargetSelector } from '../api/objects/traffic-policy.ts';
import { attachmentsOf, selectsNamespace } from '../traffic/attachments.ts';
import type { Attachment, AttachmentResources } from '../traffic/attachments.ts';
import { isGranted, selects } from '../traffic/backend-refs.ts';
import type { TrafficResources } from '../traffic/traffic-resources.ts';

type ParentKind = 'Gateway' | 'ListenerSet';

/** What a policy can target: a route, a Gateway or a ListenerSet, or with `sectionName` a rule or a listener. */
type Target = Omit<Ref<RouteKind | ParentKind>, 'kind'> & {
  readonly kind: RouteKind | ParentKind;
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

/** What decides where policies apply. */
type PolicyResources = AttachmentResources & Pick<TrafficResources, 'grants'>;

/** The policies that set something for a rule of a route, at any listener. */
export function policyFinder(
  resources: PolicyResources,
  policies: readonly BackendTrafficPolicy[],
): (route: Route, rule: number) => ReadonlySet<BackendTrafficPolicy> {
  const attachedTo = attachedIn(resources, policies);
  return (route, rule) => {
    const ofRoute = routeTargets(route, rule).flatMap(attachedTo);
    const places = attachmentsOf(route, resources).flatMap(attachment => placesAt(attachment, resources));
    const chains = (places.length > 0 ? places : [NOWHERE]).flatMap(({ targets }) =>
      chainOf(route.kind, [...ofRoute, ...targets.flatMap(attachedTo)]),
    );
    return new Set(chains.map(({ policy }) => policy));
  };
}

function attachedIn(resources: PolicyResources, policies: readonly BackendTrafficPolicy[]) {
  return (target: Target): readonly Attached[] => {
    const found = policies.filter(policy => isTarget(policy, target, resources));
    const policy = oldestOf(found);
    return policy ? [{ target, policy, younger: found.filter(each => each !== policy) }] : [];
  };
}

/** Creates the function that explains which of the policies apply. */
export function policyExplainer(
  resources: PolicyResources,
  policies: readonly BackendTrafficPolicy[],
): ExplainPolicies {
  const attachedTo = attachedIn(resources, policies);
  return (route, rule, gateways) => {
    const ofRoute = routeTargets(route, rule).flatMap(attachedTo);
    const places = attachmentsOf(route, resources)
      .filter(({ gateway }) => gateways.some(each => keyOf(each) === keyOf(gateway)))
      .flatMap(attachment => placesAt(attachment, resources));
    const all = (places.length > 0 ? places : [NOWHERE]).map(({ title, targets }) => {
      const attached = [...ofRoute, ...targets.flatMap(attachedTo)];
      return { title, policy: policyText(route.kind, attached), conflicts: attached.flatMap(conflictLines) };
    });
    return [...policyLines(all), ...new Set(all.flatMap(({ conflicts }) => conflicts))];
  };
}

/** A listener, from where requests reach a route, with the targets there; the closest target is first. */
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

/** One for each listener; a ListenerSet is closer than its Gateway, whose listeners are none of its own. */
function placesAt({ gateway, parent, listeners }: Attachment, resources: PolicyResources): readonly Place[] {
  const closest = targetOf(parent);
  const whole = parent.kind === 'ListenerSet' ? resources.gateway(gateway) : undefined;
  const wholes = [closest, ...(whole ? [targetOf(whole)] : [])];
  return listeners.map(({ name: sectionName }) => {
    const title = `listener ${sectionName} of ${closest.title}`;
    return { title, targets: [{ ...closest, sectionName, title }, ...wholes] };
  });
}

function targetOf({ kind, metadata }: Attachment['parent']): Target {
  const { namespace = '', name, labels = {} } = metadata;
  return { ...{ kind, namespace, name, labels }, title: `${kind} ${namespace}/${name}` };
}

function isTarget(
  { metadata: { namespace = '' }, targetRefs, targetSelectors }: BackendTrafficPolicy,
  target: Target,
  resources: PolicyResources,
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
  resources: PolicyResources,
): boolean {
  if (group !== GATEWAY_GROUP || kind !== target.kind || !selects(labels, target.labels)) return false;
  const isInNamespace = selectsNamespace(resources, namespaces, { namespace }, target.namespace);
  const policy = { group: ENVOY_GATEWAY_GROUP, kind: 'BackendTrafficPolicy', namespace };
  return isInNamespace && isGranted(resources, policy, { ...target, group: GATEWAY_GROUP });
}

/**
 * The closest policy, and those from which Envoy Gateway takes what it does not set:
 *
 *   HTTPRoute, GRPCRoute              none, or with mergeType that of the listener, else of the ListenerSet, else of the Gateway
 *   TLSRoute, TCPRoute, UDPRoute      all others, the closest first
 */
function chainOf(kind: RouteKind, attached: readonly Attached[]): readonly Attached[] {
  const [closest, ...others] = attached;
  if (!closest) return [];
  const parents = others
    .filter(({ target: { kind: its } }) => its === 'Gateway' || its === 'ListenerSet')
    .slice(0, 1);
  const isHttp = kind === 'HTTPRoute' || kind === 'GRPCRoute';
  const merged = closest.policy.isMerged ? parents : [];
  return [closest, ...(isHttp ? merged : others)];
}

function policyText(kind: RouteKind, attached: readonly Attached[]): string | undefined {
  const chain = chainOf(kind, attached);
  if (chain.length === 0) return undefined;
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
