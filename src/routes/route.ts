import type { RouteKind } from '../api/key.ts';
import type { goesWith } from './backend.ts';

/** One value, or a list of them. */
export type OneOrMore<T> = T | readonly T[];

/** The metadata of an object that is written for GitOps. */
export type Metadata = {
  /** Unique among the objects of its kind in its namespace. */
  readonly name: string;
  /** Without it, the object goes where it is applied. */
  readonly namespace?: string;
  readonly labels?: { readonly [name: string]: string };
  readonly annotations?: { readonly [name: string]: string };
};

/** Where a route attaches; a text stands for the name of a Gateway in the namespace of the route. */
export type ParentReference = {
  readonly group?: string;
  /** Gateway if not given. */
  readonly kind?: string;
  /** That of the route if not given. */
  readonly namespace?: string;
  readonly name: string;
  /** One listener of the Gateway; all if not given. */
  readonly sectionName?: string;
  /** The listeners of one port. */
  readonly port?: number;
};

/** An object that takes traffic; `backend()` makes one for a MeshEndpoints, and one by hand may be a Service. */
export type BackendObjectReference<Kind extends RouteKind> = {
  readonly group?: string;
  /** Service if not given. */
  readonly kind?: string;
  readonly name: string;
  /** That of the route if not given. */
  readonly namespace?: string;
  readonly port?: number;
  readonly [goesWith]?: { readonly [K in Kind]: 'fits' };
};

/** A backend of a rule, with its share of the rule's traffic. */
export type BackendRef<Kind extends RouteKind> = BackendObjectReference<Kind> & {
  /** The share among the backends of the rule, 0 to 1000000; 1 if not given. */
  readonly weight?: number;
};

/** A time as Gateway API writes it, such as 500ms, 10s or 1m30s. */
export type Duration = string;

/** Sends the requests of a client to the backend that answered the first. */
export type SessionPersistence = {
  readonly sessionName?: string;
  readonly absoluteTimeout?: Duration;
  readonly type?: 'Cookie' | 'Header';
  readonly cookieConfig?: { readonly lifetimeType?: 'Permanent' | 'Session' };
};

/** A header with its value. */
export type Header = { readonly name: string; readonly value: string };

/** What is done to the headers of a request or response. */
export type HeaderFilter = {
  /** Replaces what the header has. */
  readonly set?: readonly Header[];
  /** Comes beside what the header has. */
  readonly add?: readonly Header[];
  readonly remove?: readonly string[];
};

/** Filters that HTTP and gRPC have in common. */
export type CommonFilter<Kind extends RouteKind> =
  | { readonly type: 'RequestHeaderModifier'; readonly requestHeaderModifier: HeaderFilter }
  | { readonly type: 'ResponseHeaderModifier'; readonly responseHeaderModifier: HeaderFilter }
  | { readonly type: 'RequestMirror'; readonly requestMirror: RequestMirror<Kind> }
  | { readonly type: 'ExtensionRef'; readonly extensionRef: LocalObjectReference };

/** Sends copies of requests elsewhere and ignores the answers. */
export type RequestMirror<Kind extends RouteKind> = {
  readonly backendRef: BackendObjectReference<Kind>;
  /** How many of a hundred requests; all if neither this nor fraction is given. */
  readonly percent?: number;
  readonly fraction?: { readonly numerator: number; readonly denominator?: number };
};

/** An object in the namespace of the route. */
export type LocalObjectReference = {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
};

/** A route as it would be written in YAML. */
export type RouteObject<Kind extends RouteKind, Spec> = {
  readonly apiVersion: 'gateway.networking.k8s.io/v1';
  readonly kind: Kind;
  readonly metadata: Metadata;
  readonly spec: { readonly parentRefs: readonly ParentReference[] } & Spec;
};

/** What every route is made of. */
export type RouteProps = {
  readonly metadata: Metadata;
  readonly parentRefs: OneOrMore<string | ParentReference>;
};

/** What a route with rules is made of. `backendRefs` alone stand for one rule that takes everything. */
export type RouteWithRulesProps<RuleProps, Backend> = RouteProps & {
  readonly hostnames?: OneOrMore<string>;
} & (
    | { readonly rules: OneOrMore<RuleProps>; readonly backendRefs?: never }
    | { readonly backendRefs: OneOrMore<Backend>; readonly rules?: never }
  );
