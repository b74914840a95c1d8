import { readClusters } from '../../../../lab/gateway/envoy.ts';
import type { KubernetesObject } from '../../../../lab/gateway/objects.ts';
import type { Gateway, Lab } from '../../../../lab/state.ts';
import { until } from '../../../../lab/process/wait.ts';
import { remoteOf } from '../lab.ts';
import { hostOf, placesOf, routeWithEndpointHeader } from './changing-world.ts';
import { activeClusters } from './gateway-reads.ts';
import { answersOf } from './load.ts';
import type { Target } from './load.ts';

/** The parts of a system that are needed. */
type Base = {
  readonly lab: Lab;
  readonly gateway: Gateway;
  readonly put: (name: string, objects: readonly KubernetesObject[]) => void;
};

const MAX_RULES = 16;
/** Envoy Gateway may call the hook again only after 144 s. */
const GIVEN_UP_MS = 300_000;

/** One object that many clusters use, with its one endpoint on one of two nodes. */
export interface ManyClusters {
  /** A request for each cluster. */
  readonly targets: readonly Target[];
  /** The routes, of which each rule is a cluster. */
  routes(): readonly KubernetesObject[];
  /** A route of one more cluster. */
  route(name: string): KubernetesObject;
  /** Moves the endpoint to a node. */
  moveTo(node: 'one' | 'two'): void;
  /** The endpoint that answers a request. */
  endpointFor(target: Target): Promise<string | undefined>;
  /** The time from a moment until a route works. */
  worksAfter(startMs: number, name: string): Promise<number>;
  /** The time from a moment until every cluster has its endpoint on a node and nowhere else. */
  currentAfter(startMs: number, node: 'one' | 'two'): Promise<number>;
  /** Waits until Envoy has replaced every cluster by one that gets endpoints from an address. */
  untilAllUse(target: string): Promise<void>;
}

/** Nothing is written yet. */
export function manyClusters({ lab, gateway, put }: Base, count: number): ManyClusters {
  const nodeOf = (node: 'one' | 'two') => remoteOf(lab, node === 'one' ? 'web-1' : 'web-2');
  const port = nodeOf('one').ports['http'] ?? 0;
  const addressOf = (node: 'one' | 'two') => `${nodeOf(node).address}:${port}`;
  const rules = Array.from({ length: count }, (_, index) => ({
    route: `many-${Math.floor(index / MAX_RULES)}`,
    rule: index % MAX_RULES,
  }));
  const names = rules.map(({ route, rule }) => `httproute/default/${route}/rule/${rule}`);
  const route = (name: string) => routeWithEndpointHeader(gateway, { name, refs: [{ name: 'web', port }] });
  const withAllRules = (name: string) => {
    const object = route(name);
    const { rules: [one] = [], ...spec } = object['spec'] as { readonly rules?: readonly object[] };
    const paths = rules.filter(rule => rule.route === name).map(({ rule }) => `/rule-${rule}`);
    const many = paths.map(value => ({ ...one, matches: [{ path: { type: 'PathPrefix', value } }] }));
    return { ...object, spec: { ...spec, rules: many } };
  };
  const endpointFor = async (target: Target) => {
    const counts = await answersOf(gateway.listeners.http, target, 1, ({ endpoint }) => endpoint);
    return [...counts.keys()][0];
  };
  return {
    targets: rules.map(rule => ({ host: hostOf(rule.route), path: `/rule-${rule.rule}` })),
    routes: () => [...new Set(rules.map(rule => rule.route))].map(withAllRules),
    route,
    moveTo: node => {
      put('web', [placesOf(lab, 'web', 'http', nodeOf('one'), [{ name: 'a', on: nodeOf(node) }])]);
    },
    endpointFor,
    worksAfter: async (startMs, name) => {
      const poll = () => endpointFor({ host: hostOf(name) });
      await until(`${name} to work`, poll, { timeoutMs: GIVEN_UP_MS, everyMs: 20 });
      return Math.round(performance.now() - startMs);
    },
    currentAfter: async (startMs, node) => {
      await untilCurrent(gateway, names, addressOf(node));
      return Math.round(performance.now() - startMs);
    },
    untilAllUse: target => untilAllUse(gateway, names, target),
  };
}

async function untilCurrent(gateway: Gateway, names: readonly string[], wanted: string): Promise<void> {
  const poll = async (note: (seen: string) => void) => {
    const clusters = (await readClusters(gateway.admin)).filter(({ name }) => names.includes(name));
    const old = clusters.filter(({ endpoints }) => {
      const healthy = endpoints.filter(({ health }) => health === 'HEALTHY').map(({ address }) => address);
      return healthy.join() !== wanted;
    });
    note(`${old.length} of ${clusters.length} are not current`);
    return old.length === 0 && clusters.length === names.length;
  };
  await until('all clusters to be current', poll, { timeoutMs: GIVEN_UP_MS, everyMs: 20 });
}

async function untilAllUse(gateway: Gateway, names: readonly string[], target: string): Promise<void> {
  const wanted = JSON.stringify({ target_uri: target }).slice(1, -1);
  const poll = async (note: (seen: string) => void) => {
    const clusters = await activeClusters(gateway);
    const using = clusters
      .filter(one => JSON.stringify(one).includes(wanted))
      .map(({ cluster }) => cluster.name);
    const missing = names.filter(name => !using.includes(name));
    note(`${missing.length} do not`);
    return missing.length === 0;
  };
  await until('all clusters to use another address', poll);
}
