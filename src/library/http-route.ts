import { routeOf } from './build.ts';
import type {
  BackendRef,
  CommonFilter,
  Duration,
  OneOrMore,
  RouteObject,
  RouteWithRulesProps,
  SessionPersistence,
} from './route.ts';

/** An HTTPRoute as in YAML; the compiler knows the names of its backends. */
export type HTTPRoute<Name extends string = string> = RouteObject<
  'HTTPRoute',
  {
    readonly hostnames?: readonly string[];
    readonly rules: readonly HTTPRouteRule<Name>[];
  }
>;

/** A rule: matches, filters and backends. */
export type HTTPRouteRule<Name extends string = string> = {
  readonly name?: string;
  /** A request must match one of them; all requests match if there are none. */
  readonly matches?: readonly HTTPRouteMatch[];
  readonly filters?: readonly HTTPRouteFilter[];
  readonly backendRefs?: readonly HTTPBackendRef<Name>[];
  readonly timeouts?: { readonly request?: Duration; readonly backendRequest?: Duration };
  readonly retry?: {
    readonly codes?: readonly number[];
    readonly attempts?: number;
    readonly backoff?: Duration;
  };
  readonly sessionPersistence?: SessionPersistence;
};

/** A backend of an HTTP rule. A MeshEndpoints has only filters that modify headers: write others on the rule. */
export type HTTPBackendRef<Name extends string = string> = BackendRef<'HTTPRoute', Name> & {
  readonly filters?: readonly HTTPRouteFilter[];
};

/** Conditions that must all hold. */
export type HTTPRouteMatch = {
  readonly path?: { readonly type?: PathMatchType; readonly value?: string };
  readonly headers?: readonly HTTPValueMatch[];
  readonly queryParams?: readonly HTTPValueMatch[];
  readonly method?: HTTPMethod;
};

/** How a path is matched; PathPrefix by default. */
type PathMatchType = 'Exact' | 'PathPrefix' | 'RegularExpression';

/** A match of a header or query parameter. */
export type HTTPValueMatch = {
  readonly type?: 'Exact' | 'RegularExpression';
  readonly name: string;
  readonly value: string;
};

/** The HTTP methods of Gateway API. */
export type HTTPMethod =
  'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE' | 'CONNECT' | 'OPTIONS' | 'TRACE' | 'PATCH';

/** Filters of requests and responses. */
export type HTTPRouteFilter =
  | CommonFilter<'HTTPRoute'>
  | { readonly type: 'RequestRedirect'; readonly requestRedirect: RequestRedirect }
  | { readonly type: 'URLRewrite'; readonly urlRewrite: URLRewrite }
  | { readonly type: 'CORS'; readonly cors: CORS };

/** Responds with a redirect. */
export type RequestRedirect = {
  readonly scheme?: 'http' | 'https';
  readonly hostname?: string;
  readonly path?: PathModifier;
  readonly port?: number;
  readonly statusCode?: 301 | 302 | 303 | 307 | 308;
};

/** Rewrites the host and path of the request to the backend. */
export type URLRewrite = { readonly hostname?: string; readonly path?: PathModifier };

/** How a path is rewritten. */
export type PathModifier =
  | { readonly type: 'ReplaceFullPath'; readonly replaceFullPath: string }
  | { readonly type: 'ReplacePrefixMatch'; readonly replacePrefixMatch: string };

/** CORS. */
export type CORS = {
  readonly allowOrigins?: readonly string[];
  readonly allowCredentials?: boolean;
  readonly allowMethods?: readonly (HTTPMethod | '*')[];
  readonly allowHeaders?: readonly string[];
  readonly exposeHeaders?: readonly string[];
  /** Seconds. */
  readonly maxAge?: number;
};

/** The props of an HTTPRoute. `backendRefs` alone are short for one rule that matches all requests. */
export type HTTPRouteProps<Name extends string = string> = RouteWithRulesProps<
  HTTPRouteRuleProps<Name>,
  HTTPBackendRef<Name>
>;

/** A rule whose backendRefs may be a single one. */
export type HTTPRouteRuleProps<Name extends string = string> = Omit<HTTPRouteRule, 'backendRefs'> & {
  readonly backendRefs?: OneOrMore<HTTPBackendRef<Name>>;
};

/**
 * An HTTPRoute as in YAML, deeply frozen. Throws an AuthoringError where the HTTPRoute is invalid or does not
 * support a backend.
 */
export function httpRoute<Name extends string>(props: HTTPRouteProps<Name>): HTTPRoute<Name> {
  return routeOf('HTTPRoute', props) as HTTPRoute<Name>;
}
