import { runInNewContext } from 'node:vm';
import { isRecord, recordOf } from '../../api/json.ts';
import type { Fields } from '../../api/json.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { byAge } from '../route-age.ts';
import type { TracedRequest } from './request.ts';

/** A rule of a route that a request can reach. */
export type RuleChoice = {
  readonly route: Route;
  readonly rule: number;
  /** What the request matches in it, for people. */
  readonly text: string;
  readonly action: RuleAction;
};

/** What becomes of the requests for a rule: Envoy forwards them to its backends, or answers itself, by RequestRedirect or another filter. */
export type RuleAction = 'forward' | 'redirect' | 'answer';

/** A route as it is written, because only that has its matches. */
export type WrittenRoute = { readonly route: Route; readonly fields: Fields };

/**
 * The rule that gets a request among routes of one hostname, as Gateway API and Envoy Gateway order them: by the path, first
 * exact, then by regular expression, then by the length of the prefix; then by the number of headers, the method among them,
 * and of query parameters; then the oldest route, the first by namespace and name, and its first rule.
 */
export function chooseRule(request: TracedRequest, routes: readonly WrittenRoute[]): RuleChoice | undefined {
  const inOrder = [...routes].sort((one, other) => byAge(one.fields, other.fields));
  const all = inOrder.flatMap(written => matchesOf(written).filter(({ accepts }) => accepts(request)));
  // The sort is stable: what is equal stays in the order of age.
  const [best] = all.sort((one, other) => compare(other.rank, one.rank));
  return best;
}

/** The rules of routes, for people: what each matches. */
export function describeRules(routes: readonly WrittenRoute[]): readonly string[] {
  return routes.flatMap(written => matchesOf(written).map(({ text }) => text));
}

type Rank = readonly number[];

type RuleMatch = RuleChoice & {
  readonly rank: Rank;
  readonly accepts: (request: TracedRequest) => boolean;
};

function compare(one: Rank, other: Rank): number {
  const at = one.findIndex((value, index) => value !== other[index]);
  return at < 0 ? 0 : (one[at] ?? 0) - (other[at] ?? 0);
}

function matchesOf({ route, fields }: WrittenRoute): readonly RuleMatch[] {
  const rules = listOf(recordOf(fields['spec'])['rules']);
  return (rules.length === 0 ? [{}] : rules).flatMap((rule, index) => {
    const matches = listOf(rule['matches']);
    return (matches.length === 0 ? [{}] : matches).map(match => ({
      route,
      rule: index,
      action: actionOf(rule),
      ...(route.kind === 'GRPCRoute' ? grpcMatch(match) : httpMatch(match)),
    }));
  });
}

/** A directResponse of an HTTPRouteFilter needs no backends. */
function actionOf({ filters, backendRefs }: Fields): RuleAction {
  const all = listOf(filters);
  if (all.some(({ type }) => type === 'RequestRedirect')) return 'redirect';
  const isExtended = all.some(({ extensionRef }) => recordOf(extensionRef)['kind'] === 'HTTPRouteFilter');
  return isExtended && listOf(backendRefs).length === 0 ? 'answer' : 'forward';
}

type Condition = Pick<RuleMatch, 'rank' | 'accepts' | 'text'>;

function httpMatch(match: Fields): Condition {
  const path = pathOf(recordOf(match['path']));
  const headers = valuesOf(match['headers']);
  const query = valuesOf(match['queryParams']);
  const method = typeof match['method'] === 'string' ? match['method'] : undefined;
  const isExact = ({ type }: NamedValue) => type === 'Exact';
  const methods = method === undefined ? 0 : 1;
  return {
    rank: [
      ...path.rank,
      headers.length + methods,
      headers.filter(isExact).length + methods,
      query.length,
      query.filter(isExact).length,
    ],
    accepts: request =>
      path.accepts(request.path) &&
      (method === undefined || method === request.method) &&
      headers.every(each => isMet(each, request.headers.get(each.name.toLowerCase()))) &&
      query.every(each => isMet(each, request.query.get(each.name))),
    text: [
      ...(method === undefined ? [] : [method]),
      path.text,
      ...headers.map(({ name, value }) => `header ${name}: ${value}`),
      ...query.map(({ name, value }) => `query ${name}=${value}`),
    ].join(', '),
  };
}

/** A call is a POST to /SERVICE/METHOD. */
function grpcMatch(match: Fields): Condition {
  const { service, method, type } = recordOf(match['method']);
  const [of, name] = [service, method].map(each => (typeof each === 'string' ? each : undefined));
  const isPattern = type === 'RegularExpression';
  const value = `/${of ?? '[^/]+'}/${name ?? '.+'}`;
  const isWhole = of !== undefined && name !== undefined && !isPattern;
  const path =
    of === undefined && name === undefined
      ? {}
      : isWhole
        ? { type: 'Exact', value }
        : name === undefined && !isPattern
          ? { type: 'PathPrefix', value: `/${of}` }
          : { type: 'RegularExpression', value };
  return httpMatch({ path, headers: match['headers'] });
}

type PathMatch = {
  readonly rank: Rank;
  readonly accepts: (path: string) => boolean;
  readonly text: string;
};

/** A prefix matches whole elements: /a matches /a/b, and not /ab. */
function pathOf({ type = 'PathPrefix', value = '/' }: Fields): PathMatch {
  const text = typeof value === 'string' ? value : '/';
  switch (type) {
    case 'Exact':
      return { rank: [2, text.length], accepts: path => path === text, text: `path ${text}` };
    case 'RegularExpression': {
      const isMatch = wholePattern(text);
      return { rank: [1, text.length], accepts: isMatch, text: `path by pattern ${text}` };
    }
    default: {
      const prefix = text.replace(/\/+$/, '');
      return {
        rank: [0, prefix.length],
        accepts: path => path === prefix || path.startsWith(`${prefix}/`),
        text: prefix === '' ? 'any path' : `path prefix ${prefix}`,
      };
    }
  }
}

type NamedValue = { readonly name: string; readonly value: string; readonly type: string };

function valuesOf(value: unknown): readonly NamedValue[] {
  const all = listOf(value).flatMap(({ name, value: given, type = 'Exact' }) =>
    typeof name === 'string' && typeof given === 'string' && typeof type === 'string'
      ? [{ name, value: given, type }]
      : [],
  );
  // Of names that differ in case only, the first counts.
  return all.filter(
    ({ name }, at) => all.findIndex(each => each.name.toLowerCase() === name.toLowerCase()) === at,
  );
}

function isMet({ type, value }: NamedValue, given: string | undefined): boolean {
  if (given === undefined) return false;
  return type === 'RegularExpression' ? wholePattern(value)(given) : given === value;
}

const MAX_PATTERN_MS = 1000;

/** Envoy's own patterns are RE2. One that JavaScript cannot read, or that takes it too long, matches nothing here. */
function wholePattern(pattern: string): (text: string) => boolean {
  return text => {
    try {
      const script = 'new RegExp("^(?:" + pattern + ")$").test(text)';
      return runInNewContext(script, { pattern, text }, { timeout: MAX_PATTERN_MS }) === true;
    } catch {
      return false;
    }
  };
}

function listOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
