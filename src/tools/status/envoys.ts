import type { Problem, Subject, Why } from '../../api/problem.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { isMeshRoute } from '../../api/objects/references.ts';
import type { RuleTraffic } from '../../traffic/endpoints/route-traffic.ts';
import { isRoute } from '../check/backend-refs.ts';
import { Catalog } from '../check/objects.ts';
import type { Declarations } from '../check/objects.ts';
import { trafficIn } from '../check/traffic.ts';
import type { TrafficSettings } from '../check/traffic.ts';
import { mergedClassOf, servingIn } from '../envoy/admin.ts';
import type { ReadEnvoy } from '../envoy/admin.ts';
import { compareRule, isUsed } from '../envoy/compare.ts';
import type { EnvoyState } from '../envoy/state.ts';

/** What an Envoy has, for the routes to MeshEndpoints of its Gateways. */
export type EnvoyStatus = {
  readonly pod: string;
  /** Such as default/public; a GatewayClass where Envoy Gateway merges Gateways. */
  readonly gateway: string;
  /** A hash of the versions of all its clusters of routes: equal in Envoys with equal ones. */
  readonly version: string;
  readonly clusters: readonly ClusterStatus[];
  /** How many clusters it should have. */
  readonly expected: number;
  /** How many updates, of everything, it has rejected since it started. */
  readonly rejected: number;
};

type ClusterStatus = {
  readonly name: string;
  readonly version: string;
  readonly endpoints: { readonly used: number; readonly total: number };
  /** How many updates of its endpoints were rejected. */
  readonly rejected: number;
};

/** What Envoys have, beside the objects. */
export type EnvoysStatus = {
  readonly envoys: readonly EnvoyStatus[];
  /** Where Envoys differ from the objects or from each other, each with the way out. */
  readonly differences: readonly Problem[];
  readonly unknown: readonly Problem[];
};

/** Objects, and the configuration that decides about their traffic. */
type Expected = { readonly declarations: Declarations; readonly settings: TrafficSettings };

/** Compares Envoys with the objects. */
export function envoysStatusOf(expected: Expected, all: readonly ReadEnvoy[]): EnvoysStatus {
  const rulesOf = rulesBy(expected);
  const envoys = all.flatMap(envoy =>
    'state' in envoy ? [{ ...envoy, rules: rulesOf(envoy.gateway) }] : [],
  );
  const differences = envoys.flatMap(({ pod, state, rules }) =>
    [
      ...state.errors.map((error): Why => ({ text: `has rejected ${error}` })),
      ...rules.flatMap(rule => compareRule(rule, state).differences),
    ].map(({ text, ...rest }) =>
      differenceOf({ kind: 'Pod', name: pod }, { text: `${pod} ${text}`, ...rest }),
    ),
  );
  return {
    envoys: envoys.map(({ pod, gateway, state, rules }) => ({ pod, gateway, ...figuresOf(state, rules) })),
    differences: [...differences, ...versionDifferences(envoys)],
    unknown: all.flatMap(envoy =>
      'why' in envoy ? [unreadPod(`Envoy ${envoy.pod}: ${envoy.why}`, envoy.pod)] : [],
    ),
  };
}

/** What could not be read of a pod, or of all of them. */
export function unreadPod(text: string, name?: string): Problem {
  return { reason: 'NotRead', about: { kind: 'Pod', ...(name !== undefined && { name }) }, text };
}

function differenceOf(about: Subject, why: Why): Problem {
  return { reason: 'EnvoyDiffers', about, ...why };
}

function nameOf({ rule }: RuleTraffic): string {
  return rule.cluster.text;
}

/** The rules with MeshEndpoints of a Gateway, or of those of a GatewayClass, which have one cluster for each rule. */
function rulesBy({ declarations, settings }: Expected): (gateway: string) => readonly RuleTraffic[] {
  const trafficOf = trafficIn(new Catalog(declarations), settings).of;
  const routes = declarations.objects
    .filter(isRoute)
    .flatMap(({ resource }) => (resource ? [resource as Route] : []))
    .filter(isMeshRoute);
  const servingOf = servingIn(declarations);
  return gateway => {
    const rules = routes
      .flatMap(route => trafficOf(route, mergedClassOf(gateway)))
      .filter(({ gateways }) =>
        gateways.some(({ namespace, name }) => servingOf(`${namespace}/${name}`).includes(gateway)),
      )
      .flatMap(each => each.rules);
    return [...new Map(rules.map(rule => [nameOf(rule), rule])).values()];
  };
}

function figuresOf({ version, clusters, rejected }: EnvoyState, rules: readonly RuleTraffic[]) {
  const found = rules.flatMap(rule => clusters.get(nameOf(rule)) ?? []);
  return {
    version,
    rejected,
    expected: rules.length,
    clusters: found.map(({ name, version: ofCluster, hosts, rejected: ofEndpoints }) => ({
      name,
      version: ofCluster,
      rejected: ofEndpoints,
      endpoints: { used: hosts.filter(isUsed).length, total: hosts.length },
    })),
  };
}

/** The Gateway of an Envoy, or the GatewayClass whose Gateways Envoy Gateway merges. */
function subjectOf(gateway: string): Subject {
  const [namespace = '', name] = gateway.split('/', 2);
  return name === undefined ? { kind: 'GatewayClass', name: gateway } : { kind: 'Gateway', namespace, name };
}

/** Envoys of a Gateway get the same clusters. */
function versionDifferences(
  envoys: readonly { readonly pod: string; readonly gateway: string; readonly state: EnvoyState }[],
): readonly Problem[] {
  return [...new Set(envoys.map(({ gateway }) => gateway))].flatMap(gateway => {
    const pods = new Map<string, string>();
    for (const { pod, state } of envoys.filter(each => each.gateway === gateway))
      pods.set(state.version, pod);
    if (pods.size < 2) return [];
    const texts = [...pods].map(([version, pod]) => `${version} in ${pod}`).join(', ');
    const text = `Envoys of ${gateway} have different clusters (${texts})`;
    const fix = 'wait a few seconds for the update, then see the log of Envoy Gateway';
    return [differenceOf(subjectOf(gateway), { text, fix })];
  });
}
