import type { Route } from '../../api/objects/gateway-api.ts';
import { keyOf } from '../../api/key.ts';
import type { Ref, RouteKind } from '../../api/key.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import { refTo } from '../../api/objects/references.ts';
import type { BackendTrafficPolicy } from '../../api/objects/traffic-policy.ts';
import { attachmentsOf } from '../../traffic/attachments.ts';
import type { Attachment, AttachmentResources } from '../../traffic/attachments.ts';
import {
  isTarget,
  policyTargetOf,
  routeTargets,
  titleOfTrafficPolicy,
} from '../../traffic/policy/traffic-policies.ts';
import type { PolicyTarget } from '../../traffic/policy/traffic-policies.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';
import type { Setting } from './setting.ts';

/** What a policy can target, and how lines about a rule call it. */
type Target = PolicyTarget & { readonly title: string };

/** The policy of a target, and those that do not apply because it is older. */
type Attached = {
  readonly target: Target;
  readonly policy: BackendTrafficPolicy;
  readonly younger: readonly BackendTrafficPolicy[];
};

/** The BackendTrafficPolicies that apply to a rule of a route at some Gateways, as Envoy Gateway decides it. */
export type TrafficPolicySettings = (
  route: Route,
  rule: number | 'only',
  gateways: readonly Ref<'Gateway'>[],
) => readonly Setting[];

/** What decides where policies apply. */
type PolicyResources = AttachmentResources & Pick<TrafficResources, 'grants'>;

function attachedIn(resources: PolicyResources, policies: readonly BackendTrafficPolicy[]) {
  return (target: Target): readonly Attached[] => {
    const found = policies.filter(policy => isTarget(policy, target, resources));
    const policy = oldestOf(found);
    return policy ? [{ target, policy, younger: found.filter(each => each !== policy) }] : [];
  };
}

/** Creates the function that names those of the policies that apply. */
export function trafficPolicySettings(
  resources: PolicyResources,
  policies: readonly BackendTrafficPolicy[],
): TrafficPolicySettings {
  const attachedTo = attachedIn(resources, policies);
  return (route, rule, gateways) => {
    const ofRoute = targetsOfRoute(route, rule).flatMap(attachedTo);
    const places = attachmentsOf(route, resources)
      .filter(({ gateway }) => gateways.some(each => keyOf(each) === keyOf(gateway)))
      .flatMap(attachment => placesAt(attachment, resources));
    const all = (places.length > 0 ? places : [NOWHERE]).map(({ title, targets }) => {
      const attached = [...ofRoute, ...targets.flatMap(attachedTo)];
      return { title, chain: chainOf(route.kind, attached), conflicts: attached.flatMap(conflictsOf) };
    });
    const conflicts = new Map(all.flatMap(place => place.conflicts.map(each => [each.text, each])));
    return [...appliedOf(all), ...conflicts.values()];
  };
}

/** A listener, from where requests reach a route, with the targets there; the closest target is first. */
type Place = { readonly title: string; readonly targets: readonly Target[] };

const NOWHERE: Place = { title: '', targets: [] };

function targetsOfRoute(route: Route, rule: number | 'only'): readonly Target[] {
  return routeTargets(route, rule).map(target => ({
    ...target,
    title: target.sectionName === undefined ? 'the route' : `rule ${target.sectionName}`,
  }));
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

function targetOf(parent: Attachment['parent']): Target {
  const target = policyTargetOf(parent);
  return { ...target, title: `${target.kind} ${target.namespace}/${target.name}` };
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

function policyText(chain: readonly Attached[]): string {
  return chain
    .map(({ policy, target }) => `${titleOfTrafficPolicy(policy)} of ${target.title}`)
    .join(', over ');
}

/** One if the same applies everywhere, else one for each place. */
function appliedOf(
  all: readonly { readonly title: string; readonly chain: readonly Attached[] }[],
): readonly Setting[] {
  const isSame = new Set(all.map(({ chain }) => policyText(chain))).size === 1;
  return (isSame ? all.slice(0, 1) : all).flatMap(({ title, chain }) => {
    if (chain.length === 0) return [];
    const by = chain.map(({ policy }) => refTo(policy));
    const text = `policy${isSame ? '' : ` at ${title}`}: ${policyText(chain)}`;
    return [{ by, isApplied: true, text }];
  });
}

function conflictsOf({ target, policy, younger }: Attached): readonly Setting[] {
  return younger.map(each => ({
    by: [refTo(each)],
    isApplied: false,
    text: `policy not applied: ${titleOfTrafficPolicy(each)}: ${titleOfTrafficPolicy(policy)} is older and targets ${target.title} too`,
  }));
}
