import { addressText } from '../../api/socket-address.ts';
import type { SocketAddress } from '../../api/socket-address.ts';
import { healthStatusesOf } from '../../traffic/endpoints/health-status.ts';
import type { HealthStatus } from '../../traffic/endpoints/health-status.ts';
import type { EnvoyEndpoint } from '../../traffic/endpoints/load-assignment.ts';
import type { RuleTraffic } from '../../traffic/endpoints/route-traffic.ts';
import { formatBackendCluster } from '../../traffic/envoy-cluster-name.ts';
import type { ResolvedRule } from '../../traffic/resolve-route.ts';
import { clustersBeside } from '../../traffic/rule-shares.ts';
import type { EnvoyCluster, EnvoyHost, EnvoyState } from './state.ts';

/** The cluster of a rule in an Envoy, beside what the objects have. */
export type Comparison = {
  readonly differences: readonly Difference[];
  /** What Envoy has. */
  readonly lines: readonly string[];
};

/** Where an Envoy differs: what it has or does, after its name, and what to do. */
type Difference = { readonly text: string; readonly fix: string };

const NOT_SENT =
  'see mesh-gateway status for whether Envoy Gateway has translated the Gateway, and mesh-gateway doctor';

/**
 * Compares an Envoy with what it should have for a rule:
 * | of       | difference                                                              |
 * | cluster  | missing, or waiting for endpoints                                       |
 * | endpoint | missing, additional, or with another health, priority, weight or proxy |
 * | verdict  | the operator's is not that of Envoy's own checks and outlier detection  |
 * Where the rule is divided, of the clusters of single backends those of MeshEndpoints.
 */
export function compareRule(traffic: RuleTraffic, { clusters }: Pick<EnvoyState, 'clusters'>): Comparison {
  const { cluster, shares, backends } = traffic.rule;
  const name = cluster.text;
  const own = clusters.get(name);
  const isDivided = [...clusters.keys()].some(each => each.startsWith(`${name}/backend/`));
  const beside = own ? clustersBeside(name, shares) : [];
  const ofBackends = backends
    .map(({ index, ref }) => ({ index, weight: ref.weight, text: formatBackendCluster(cluster, index) }))
    .filter(({ weight, text }) => weight > 0 && (own ? beside.includes(text) : isDivided));
  const isCompared = own ? !shares?.isApart : ofBackends.length === 0;
  const parts = [
    ...(isCompared ? [compareCluster(clusters, name, expectedOf(traffic))] : []),
    ...ofBackends.map(({ index, text }) => compareCluster(clusters, text, expectedOfBackend(traffic, index))),
  ];
  return {
    differences: parts.flatMap(({ differences }) => differences),
    lines: parts.flatMap(({ lines }) => lines),
  };
}

function compareCluster(
  clusters: EnvoyState['clusters'],
  name: string,
  expected: readonly Expected[],
): Comparison {
  const cluster = clusters.get(name);
  if (!cluster) return { differences: [{ text: `has no cluster ${name}`, fix: NOT_SENT }], lines: [] };
  return { differences: [...differencesOf(cluster, expected)], lines: linesOf(cluster, expected) };
}

/** An endpoint that Envoy should have. */
type Expected = {
  readonly address: string;
  /** Its name and address; the address alone of an endpoint of a Service. */
  readonly title: string;
  /** Undefined where it depends on checks of Envoy that the rule as a whole does not have. */
  readonly health: HealthStatus | undefined;
  readonly priority: number;
  readonly weight: number;
  readonly backendWeight: number;
  readonly proxy: string | undefined;
  /** What the operator has found; undefined for what it does not check. */
  readonly verdict: HealthStatus | undefined;
};

function expectedOf({ rule, localities }: Pick<RuleTraffic, 'rule' | 'localities'>): readonly Expected[] {
  const known = knownIn(rule);
  return localities.flatMap(({ priority, weight: backendWeight, endpoints }) =>
    endpoints.map((endpoint): Expected => {
      const address = textOf(endpoint);
      const { name, verdict } = known.get(targetOf(endpoint)) ?? {};
      const title = name === undefined ? address : `${name} at ${address}`;
      const proxy = endpoint.proxy && textOf(endpoint.proxy);
      const { health, weight } = endpoint;
      return { address, title, health, priority, weight, backendWeight, proxy, verdict };
    }),
  );
}

/** The cluster of one backend has priorities of its own, and may have checks of Envoy that decide where all endpoints are unhealthy. */
function expectedOfBackend({ rule, localities }: RuleTraffic, index: number): readonly Expected[] {
  const own = localities.filter(({ backend }) => backend === index);
  const priorities = [...new Set(own.map(({ priority }) => priority))].sort((a, b) => a - b);
  const renumbered = own.map(each => ({ ...each, priority: priorities.indexOf(each.priority) }));
  const expected = expectedOf({ rule, localities: renumbered });
  const isUnhealthy = ({ health }: Expected) => health === 'UNHEALTHY' || health === 'DRAINING';
  return expected.every(isUnhealthy) ? expected.map(each => ({ ...each, health: undefined })) : expected;
}

/** The names and verdicts of MeshEndpoints by what Envoy connects to. */
function knownIn({ backends }: ResolvedRule) {
  return new Map(
    backends
      .flatMap(backend => backend.endpoints)
      .map(resolved => {
        const { endpoint, object } = resolved;
        const verdict = healthStatusesOf(object, 'UNKNOWN')(resolved);
        return [endpoint.externalTarget ?? addressText(endpoint), { name: endpoint.name, verdict }] as const;
      }),
  );
}

function targetOf(endpoint: EnvoyEndpoint): string {
  return endpoint.externalTarget ?? textOf(endpoint.relayedTo ?? endpoint);
}

function textOf({ address, port }: SocketAddress): string {
  return addressText({ meshIP: address, port });
}

function* differencesOf(cluster: EnvoyCluster, expected: readonly Expected[]): Generator<Difference> {
  const { name, isWarming, hosts, rejected } = cluster;
  if (isWarming)
    yield {
      text: `has an update of ${name} that waits for endpoints`,
      fix: 'see mesh-gateway doctor for port 5005',
    };
  const fix =
    rejected === 0
      ? 'wait a few seconds for the update, then see mesh-gateway doctor'
      : `it has rejected updates of them (${rejected}), with the reasons in mesh-gateway status`;
  const found = new Map(hosts.map(host => [host.address, host]));
  const missing = expected.filter(({ address }) => !found.has(address)).map(({ title }) => title);
  if (missing.length > 0) yield { text: `has no endpoint ${listed(missing)}`, fix };
  const addresses = new Set(expected.map(({ address }) => address));
  const others = hosts.filter(({ address }) => !addresses.has(address)).map(({ address }) => address);
  if (others.length > 0) yield { text: `has endpoints that the objects do not have, ${listed(others)}`, fix };
  for (const each of expected) {
    const host = found.get(each.address);
    if (!host) continue;
    const stale = staleIn(each, host);
    if (stale.length > 0) yield { text: `has ${each.title} ${stale.join(', and ')}`, fix };
    else yield* disagreement(each, host);
  }
}

const MAX_NAMED = 8;

function listed(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  return names.slice(0, MAX_NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** What Envoy has of an endpoint that is not as in the objects. */
function staleIn(expected: Expected, host: EnvoyHost): readonly string[] {
  const { health, priority, weight, backendWeight, proxy } = expected;
  const weighs = (what: string, has: number | undefined, wanted: number) =>
    has === undefined ? [] : [[what, String(has), String(wanted)] as const];
  const pairs = [
    ...weighs('with weight', host.weight, weight),
    ...weighs('of a backend with weight', host.backendWeight, backendWeight),
    // Envoy does not distinguish what is not known.
    ...(health ? [['as', host.health, health === 'UNKNOWN' ? 'HEALTHY' : health] as const] : []),
    ['at priority', String(host.priority), String(priority)],
    ['through', host.proxy ?? 'no proxy', proxy ?? 'no proxy'],
  ];
  return pairs.flatMap(([what, has, wanted]) =>
    has === wanted ? [] : `${what} ${has} instead of ${wanted}`,
  );
}

function disagreement({ title, verdict }: Expected, host: EnvoyHost): readonly Difference[] {
  const failing = refusalsOf(host);
  if (verdict === 'HEALTHY' && failing.length > 0)
    return [
      {
        text: `does not use ${title} (${failing.join(', ')}), which is HEALTHY by the objects`,
        fix: failing.some(isOwnCheck) ? CHECKED : FAILED,
      },
    ];
  if (verdict === 'UNHEALTHY' && host.health === 'HEALTHY' && failing.length === 0)
    return [
      {
        text: `uses ${title}, which is UNHEALTHY for the operator`,
        fix: 'see status.endpoints of its MeshEndpoints',
      },
    ];
  return [];
}

function isOwnCheck(flag: string): boolean {
  return flag.includes('active_health_check');
}

const CHECKED =
  'its own health check fails there, so compare healthCheck with what the service answers to Envoy; if it uses no endpoint at all, see mesh-gateway doctor for NetworkPolicies between Envoy and mesh pods';
const FAILED = 'requests to it have failed: see its log, and outlierDetection of BackendTrafficPolicies';

/** Other flags, such as active_hc_timeout, go with one of these, or keep nothing from being used. */
function refusalsOf({ failing }: EnvoyHost): readonly string[] {
  return failing.filter(flag => /^(failed|excluded)_/.test(flag));
}

/** Whether Envoy sends requests to an endpoint, if its cluster has no panic. */
export function isUsed(host: EnvoyHost): boolean {
  return host.health === 'HEALTHY' && refusalsOf(host).length === 0;
}

const MAX_HOSTS = 16;

function linesOf({ name, version, hosts }: EnvoyCluster, expected: readonly Expected[]): readonly string[] {
  const titles = new Map(expected.map(({ address, title }) => [address, title]));
  const used = hosts.filter(isUsed).length;
  const shown = hosts.slice(0, MAX_HOSTS).map(host => {
    const state = [host.health, ...host.failing, ...weightsOf(host)].join(', ');
    const path = host.proxy === undefined ? '' : ` through ${host.proxy}`;
    return `has endpoint ${titles.get(host.address) ?? host.address}${path}: ${state}`;
  });
  const more = hosts.length > MAX_HOSTS ? [`has ${hosts.length - MAX_HOSTS} more`] : [];
  const of = version === '' ? '' : ` of version ${version}`;
  return [`has cluster ${name}${of}: ${used} of ${hosts.length} endpoints in use`, ...shown, ...more];
}

/** Those that change something. */
function weightsOf({ weight = 1, backendWeight = 1 }: EnvoyHost): readonly string[] {
  return [
    ...(weight === 1 ? [] : [`weight ${weight}`]),
    ...(backendWeight === 1 ? [] : [`backend weight ${backendWeight}`]),
  ];
}
