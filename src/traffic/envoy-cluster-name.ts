import type { RouteKind } from '../api/key.ts';
import { declaredNameOf, MOST_OTHER_NAMES } from '../api/names.ts';

/** What a name that Envoy Gateway gives to a cluster says: which rule of which route it serves. */
export type EnvoyClusterName = {
  /** The name as a whole. */
  readonly text: string;
  readonly kind: RouteKind;
  readonly namespace: string;
  /** As the route was declared, whatever Envoy Gateway knows it by. */
  readonly name: string;
  /** The position of the rule; kinds below HTTP have one rule, which has no position. */
  readonly rule: number | 'only';
  /** The position of the one backend that it serves, where each has a cluster of its own. */
  readonly backend?: number;
};

const KINDS: ReadonlyMap<string, RouteKind> = new Map(
  (['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'] as const).map(kind => [
    kind.toLowerCase(),
    kind,
  ]),
);

/** What the name of a cluster says, or nothing where it is not the name of a rule; most of many names are not. */
export function parseEnvoyClusterName(text: string): EnvoyClusterName | undefined {
  const kindEnd = text.indexOf('/');
  if (kindEnd < SHORTEST_KIND || kindEnd > LONGEST_KIND) return undefined;
  const kind = KINDS.get(text.slice(0, kindEnd));
  if (kind === undefined) return undefined;
  const [, namespace = '', known = '', word, rule = '', backendWord, backend, end] = text.split(
    '/',
    MOST_PARTS,
  );
  const { declared: name, nth: otherName } = declaredNameOf(known);
  if (otherName > MOST_OTHER_NAMES) return undefined;
  if (namespace === '' || name === '' || word !== 'rule' || end !== undefined) return undefined;
  const at = rule === '-1' ? 'only' : position(rule);
  if (at === undefined) return undefined;
  if (backendWord === undefined) return { text, kind, namespace, name, rule: at };
  const nth = backendWord === 'backend' && backend !== undefined ? position(backend) : undefined;
  return nth === undefined ? undefined : { text, kind, namespace, name, rule: at, backend: nth };
}

const [SHORTEST_KIND, LONGEST_KIND] = ['tcproute'.length, 'httproute'.length];

/** One more than a name of ours has, so that it is seen. */
const MOST_PARTS = 8;

/** A number as Envoy Gateway writes it. */
function position(text: string): number | undefined {
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
