import type { Fault } from '../api/validation/fault.ts';
import type { RouteKind } from '../api/key.ts';
import { nearest } from '../api/validation/nearest.ts';
import { isRecord } from '../api/json.ts';
import type { GRPCRoute } from './grpc-route.ts';
import type { HTTPRoute } from './http-route.ts';
import type { TCPRoute, TLSRoute, UDPRoute } from './stream-routes.ts';

/** The fields of a type, recursively; true for a type without fields. A list has the fields of its items. */
type Known = true | { readonly [name: string]: Known };

/** The same computed from a type, so that the compiler refuses a list of fields that differs from the type. */
type KnownOf<T> = [T] extends [string | number | boolean]
  ? true
  : [T] extends [readonly (infer Item)[]]
    ? KnownOf<Item>
    : { readonly [Name in NameIn<T>]: KnownOf<NonNullable<ValueIn<T, Name>>> };

type NameIn<T> = T extends unknown ? keyof T & string : never;
type ValueIn<T, Name extends string> = T extends { readonly [N in Name]?: infer Value } ? Value : never;

const parentRefs = {
  group: true,
  kind: true,
  namespace: true,
  name: true,
  sectionName: true,
  port: true,
} as const;
const reference = { group: true, kind: true, name: true, namespace: true, port: true } as const;
const headers = { name: true, value: true } as const;
const headerFilter = { set: headers, add: headers, remove: true } as const;
const values = { type: true, name: true, value: true } as const;
const path = { type: true, replaceFullPath: true, replacePrefixMatch: true } as const;
const sessionPersistence = {
  sessionName: true,
  absoluteTimeout: true,
  type: true,
  cookieConfig: { lifetimeType: true },
} as const;
const commonFilter = {
  type: true,
  requestHeaderModifier: headerFilter,
  responseHeaderModifier: headerFilter,
  requestMirror: {
    backendRef: reference,
    percent: true,
    fraction: { numerator: true, denominator: true },
  },
  extensionRef: { group: true, kind: true, name: true },
} as const;
const httpFilter = {
  ...commonFilter,
  requestRedirect: { scheme: true, hostname: true, path, port: true, statusCode: true },
  urlRewrite: { hostname: true, path },
  cors: {
    allowOrigins: true,
    allowCredentials: true,
    allowMethods: true,
    allowHeaders: true,
    exposeHeaders: true,
    maxAge: true,
  },
} as const;
const stream = { name: true, backendRefs: { ...reference, weight: true } } as const;

const HTTP: KnownOf<HTTPRoute['spec']> = {
  parentRefs,
  hostnames: true,
  rules: {
    name: true,
    matches: { path: { type: true, value: true }, headers: values, queryParams: values, method: true },
    filters: httpFilter,
    backendRefs: { ...reference, weight: true, filters: httpFilter },
    timeouts: { request: true, backendRequest: true },
    retry: { codes: true, attempts: true, backoff: true },
    sessionPersistence,
  },
};
const GRPC: KnownOf<GRPCRoute['spec']> = {
  parentRefs,
  hostnames: true,
  rules: {
    name: true,
    matches: { method: { type: true, service: true, method: true }, headers: values },
    filters: commonFilter,
    backendRefs: { ...reference, weight: true, filters: commonFilter },
    sessionPersistence,
  },
};
const TLS: KnownOf<TLSRoute['spec']> = { parentRefs, hostnames: true, rules: stream };
const TCP: KnownOf<TCPRoute['spec']> = { parentRefs, rules: stream };
const UDP: KnownOf<UDPRoute['spec']> = { parentRefs, rules: stream };

const KNOWN: Readonly<Record<RouteKind, Known>> = {
  HTTPRoute: HTTP,
  GRPCRoute: GRPC,
  TLSRoute: TLS,
  TCPRoute: TCP,
  UDPRoute: UDP,
};

/** A fault for each field in the spec of a route that its kind does not have. */
export function unknownFieldsIn(kind: RouteKind, object: unknown): readonly Fault[] {
  const spec = isRecord(object) ? object['spec'] : undefined;
  return search(spec, KNOWN[kind], ['spec'], 'spec');
}

function search(value: unknown, known: Known, steps: readonly string[], at: string): readonly Fault[] {
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index) =>
      search(item, known, [...steps, String(index)], `${at}[${index}]`),
    );
  }
  if (!isRecord(value) || known === true) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const [innerSteps, innerAt] = [[...steps, name], `${at}.${name}`];
    const isKnown = Object.hasOwn(known, name);
    const below = isKnown ? known[name] : undefined;
    if (below) return search(inner, below, innerSteps, innerAt);
    const meant = nearest(name, Object.keys(known));
    const hint = meant === undefined ? 'remove it' : `did you mean ${meant}?`;
    return [{ path: innerAt, steps: innerSteps, message: `is not a field here: ${hint}` }];
  });
}
