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

/** An HTTPRoute as it would be written in YAML. */
export type HTTPRoute = RouteObject<
  'HTTPRoute',
  {
    readonly hostnames?: readonly string[];
    readonly rules: readonly HTTPRouteRule[];
  }
>;

/** Which requests a rule takes, what is done to them, and where they go. */
export type HTTPRouteRule = {
  readonly name?: string;
  /** One of them must match; without any, all requests do. */
  readonly matches?: readonly HTTPRouteMatch[];
  readonly filters?: readonly HTTPRouteFilter[];
  readonly backendRefs?: readonly HTTPBackendRef[];
  readonly timeouts?: { readonly request?: Duration; readonly backendRequest?: Duration };
  readonly retry?: {
    readonly codes?: readonly number[];
    readonly attempts?: number;
    readonly backoff?: Duration;
  };
  readonly sessionPersistence?: SessionPersistence;
};

/** A backend of an HTTP rule. Envoy Gateway ignores filters of a MeshEndpoints: they belong to the rule. */
export type HTTPBackendRef = BackendRef<'HTTPRoute'> & { readonly filters?: readonly HTTPRouteFilter[] };

/** Conditions that must all hold. */
export type HTTPRouteMatch = {
  readonly path?: { readonly type?: PathMatchType; readonly value?: string };
  readonly headers?: readonly HTTPValueMatch[];
  readonly queryParams?: readonly HTTPValueMatch[];
  readonly method?: HTTPMethod;
};

/** How a path is compared; PathPrefix if not given. */
type PathMatchType = 'Exact' | 'PathPrefix' | 'RegularExpression';

/** What a header or a parameter of the query must be. */
export type HTTPValueMatch = {
  readonly type?: 'Exact' | 'RegularExpression';
  readonly name: string;
  readonly value: string;
};

/** The methods of HTTP that Gateway API knows. */
export type HTTPMethod =
  'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE' | 'CONNECT' | 'OPTIONS' | 'TRACE' | 'PATCH';

/** What is done to requests and responses. */
export type HTTPRouteFilter =
  | CommonFilter<'HTTPRoute'>
  | { readonly type: 'RequestRedirect'; readonly requestRedirect: RequestRedirect }
  | { readonly type: 'URLRewrite'; readonly urlRewrite: URLRewrite }
  | { readonly type: 'CORS'; readonly cors: CORS };

/** Answers with another address. */
export type RequestRedirect = {
  readonly scheme?: 'http' | 'https';
  readonly hostname?: string;
  readonly path?: PathModifier;
  readonly port?: number;
  readonly statusCode?: 301 | 302 | 303 | 307 | 308;
};

/** Changes what the backend is asked for. */
export type URLRewrite = { readonly hostname?: string; readonly path?: PathModifier };

/** How a path is changed. */
export type PathModifier =
  | { readonly type: 'ReplaceFullPath'; readonly replaceFullPath: string }
  | { readonly type: 'ReplacePrefixMatch'; readonly replacePrefixMatch: string };

/** Which pages of others may ask. */
export type CORS = {
  readonly allowOrigins?: readonly string[];
  readonly allowCredentials?: boolean;
  readonly allowMethods?: readonly (HTTPMethod | '*')[];
  readonly allowHeaders?: readonly string[];
  readonly exposeHeaders?: readonly string[];
  /** Seconds. */
  readonly maxAge?: number;
};

/** What an HTTPRoute is made of. `backendRefs` alone stand for one rule that takes all requests. */
export type HTTPRouteProps = RouteWithRulesProps<HTTPRouteRuleProps, HTTPBackendRef>;

/** A rule in which one backend needs no list. */
export type HTTPRouteRuleProps = Omit<HTTPRouteRule, 'backendRefs'> & {
  readonly backendRefs?: OneOrMore<HTTPBackendRef>;
};

/**
 * An HTTPRoute as it would be written in YAML, deeply frozen. Throws an AuthoringError where a backend does not fit,
 * or what is given is no HTTPRoute.
 */
export function httpRoute(props: HTTPRouteProps): HTTPRoute {
  return routeOf('HTTPRoute', props) as HTTPRoute;
}
