import type { RouteKind } from '../api/key.ts';
import { declaredNameOf, MOST_OTHER_NAMES } from '../api/names.ts';

/** The parts of a name that Envoy Gateway gives to a cluster: the route and the rule that it serves. */
export type EnvoyClusterName = {
  /** The whole name. */
  readonly text: string;
  readonly kind: RouteKind;
  readonly namespace: string;
  /** metadata.name of the route, also where standalone gave it to Envoy Gateway under another name. */
  readonly name: string;
  /** The index of the rule; TLSRoute, TCPRoute and UDPRoute have one cluster for all rules. */
  readonly rule: number | 'only';
  /**
   * The index of the backendRef, where each has a cluster of its own: Envoy Gateway does so if a backend of the rule does
   * not resolve or has filters. It then sends no requests to MeshEndpoints, but Envoy subscribes to their endpoints, so that
   * `mesh_gateway_unresolved_references` counts them.
   */
  readonly backend?: number;
};

const KINDS: ReadonlyMap<string, RouteKind> = new Map(
  (['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'] as const).map(kind => [
    kind.toLowerCase(),
    kind,
  ]),
);

/** Parses the name of a cluster; undefined unless it is that of a rule. Most of many names are not, so it gives up early. */
export function parseEnvoyClusterName(text: string): EnvoyClusterName | undefined {
  const kindEnd = text.indexOf('/');
  if (kindEnd < SHORTEST_KIND || kindEnd > LONGEST_KIND) return undefined;
  const kind = KINDS.get(text.slice(0, kindEnd));
  if (kind === undefined) return undefined;
  const [, namespace = '', known = '', ruleWord, rule = '', backendWord, backend, rest] = text.split(
    '/',
    MAX_PARTS,
  );
  const { declared: name, nth } = declaredNameOf(known);
  if (nth > MOST_OTHER_NAMES) return undefined;
  if (namespace === '' || name === '' || ruleWord !== 'rule' || rest !== undefined) return undefined;
  const ruleIndex = rule === '-1' ? 'only' : parseIndex(rule);
  if (ruleIndex === undefined) return undefined;
  if (backendWord === undefined) return { text, kind, namespace, name, rule: ruleIndex };
  const index = backendWord === 'backend' && backend !== undefined ? parseIndex(backend) : undefined;
  return index === undefined ? undefined : { text, kind, namespace, name, rule: ruleIndex, backend: index };
}

const [SHORTEST_KIND, LONGEST_KIND] = ['tcproute'.length, 'httproute'.length];

/** One more than the longest name has, so that a longer one is refused. */
const MAX_PARTS = 8;

function parseIndex(text: string): number | undefined {
  return /^(0|[1-9]\d{0,8})$/.test(text) ? Number(text) : undefined;
}

/** The name that Envoy Gateway gives to the cluster of a rule, or of one of its backends. */
export function formatEnvoyClusterName(
  kind: RouteKind,
  namespace: string,
  name: string,
  rule: EnvoyClusterName['rule'],
  backend?: number,
): string {
  const text = `${kind.toLowerCase()}/${namespace}/${name}/rule/${rule === 'only' ? -1 : rule}`;
  return backend === undefined ? text : `${text}/backend/${backend}`;
}
