import type { RouteKind } from '../api/key.ts';
import { declaredNameOf, MAX_OTHER_NAMES } from '../api/names.ts';

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
   * not resolve or has filters, for example (rule-shares.ts).
   */
  readonly backend?: number;
};

const KINDS: ReadonlyMap<string, RouteKind> = new Map(
  (['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'] as const).map(kind => [
    kind.toLowerCase(),
    kind,
  ]),
);

const INDEX = String.raw`0|[1-9]\d{0,8}`;

const NAME = new RegExp(
  `^(${[...KINDS.keys()].join('|')})/([^/]+)/([^/]+)/rule/(-1|${INDEX})(?:/backend/(${INDEX}))?$`,
);

/** Parses the name of a cluster; undefined unless it is that of a rule. */
export function parseEnvoyClusterName(text: string): EnvoyClusterName | undefined {
  const [, word = '', namespace = '', known = '', rule = '', backend] = NAME.exec(text) ?? [];
  const kind = KINDS.get(word);
  if (kind === undefined) return undefined;
  const { declared: name, nth } = declaredNameOf(known);
  if (nth > MAX_OTHER_NAMES) return undefined;
  const parsed = { text, kind, namespace, name, rule: rule === '-1' ? 'only' : Number(rule) } as const;
  return backend === undefined ? parsed : { ...parsed, backend: Number(backend) };
}

/** The name of the cluster of one backend of a rule, by the name of the rule's own. */
export function formatBackendCluster({ text }: Pick<EnvoyClusterName, 'text'>, index: number): string {
  return `${text}/backend/${index}`;
}

const RULE_OF_BACKEND = /^(.*)\/backend\/\d{1,9}$/;

/** The name of the cluster of a rule, by that of the cluster of one of its backends. */
export function ruleOfBackendCluster(cluster: string): string | undefined {
  return RULE_OF_BACKEND.exec(cluster)?.[1];
}

const RULE_OF_ROUTE = /^((?:http|grpc)route\/[^/]+\/[^/]+\/rule\/\d{1,9})\/match\//;

/** The name of the cluster of the rule from which Envoy Gateway made a route of Envoy, by the name of that route. */
export function ruleOfEnvoyRoute(name: string): string | undefined {
  return RULE_OF_ROUTE.exec(name)?.[1];
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
