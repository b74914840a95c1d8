import type { RouteKind } from '../api/key.ts';
import type { supportedBy } from './backend.ts';

/** One value, or a list of them. */
export type OneOrMore<T> = T | readonly T[];

/** The metadata that an author writes. */
export type Metadata = {
  /** Unique among the objects of its kind in its namespace. */
  readonly name: string;
  /** Without it, the namespace in which the object is applied. */
  readonly namespace?: string;
  readonly labels?: { readonly [name: string]: string };
  readonly annotations?: { readonly [name: string]: string };
};

/** Where a route attaches; a string is the name of a Gateway in the namespace of the route. */
export type ParentReference = {
  readonly group?: string;
  /** Gateway by default. */
  readonly kind?: string;
  /** That of the route by default. */
  readonly namespace?: string;
  readonly name: string;
  /** One listener of the Gateway; all by default. */
  readonly sectionName?: string;
  /** The listeners of one port. */
  readonly port?: number;
};

/** A reference to a backend: made by `backend()` for a MeshEndpoints, or written for a Service. */
export type BackendObjectReference<Kind extends RouteKind, Name extends string = string> = {
  readonly group?: string;
  /** Service by default. */
  readonly kind?: string;
  readonly name: Name;
  /** That of the route by default. */
  readonly namespace?: string;
  readonly port?: number;
  readonly [supportedBy]?: { readonly [K in Kind]: 'fits' };
};

/** A backend of a rule, with its share of the rule's traffic. */
export type BackendRef<Kind extends RouteKind, Name extends string = string> = BackendObjectReference<
  Kind,
  Name
> & {
  /** The share among the backends of the rule, 0 to 1000000; 1 by default. */
  readonly weight?: number;
};

/** A duration of Gateway API, such as 500ms, 10s or 1m30s. */
export type Duration = string;

/** Sends all requests of a client to one backend. */
export type SessionPersistence = {
  readonly sessionName?: string;
  readonly absoluteTimeout?: Duration;
  readonly type?: 'Cookie' | 'Header';
  readonly cookieConfig?: { readonly lifetimeType?: 'Permanent' | 'Session' };
};

/** A header with its value. */
export type Header = { readonly name: string; readonly value: string };

/** Changes the headers of a request or response. */
export type HeaderFilter = {
  /** Replaces the values of the header. */
  readonly set?: readonly Header[];
  /** Appends to the values of the header. */
  readonly add?: readonly Header[];
  readonly remove?: readonly string[];
};

/** Filters that HTTP and gRPC have in common. */
export type CommonFilter<Kind extends RouteKind> =
  | { readonly type: 'RequestHeaderModifier'; readonly requestHeaderModifier: HeaderFilter }
  | { readonly type: 'ResponseHeaderModifier'; readonly responseHeaderModifier: HeaderFilter }
  | { readonly type: 'RequestMirror'; readonly requestMirror: RequestMirror<Kind> }
  | { readonly type: 'ExtensionRef'; readonly extensionRef: LocalObjectReference };

/** Sends copies of requests to another backend and ignores the responses. */
export type RequestMirror<Kind extends RouteKind> = {
  readonly backendRef: BackendObjectReference<Kind>;
  /** The percentage of requests; 100 without this and fraction. */
  readonly percent?: number;
  readonly fraction?: { readonly numerator: number; readonly denominator?: number };
};

/** An object in the namespace of the route. */
export type LocalObjectReference = {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
};

/** A route as in YAML. */
export type RouteObject<Kind extends RouteKind, Spec> = {
  readonly apiVersion: 'gateway.networking.k8s.io/v1';
  readonly kind: Kind;
  readonly metadata: Metadata;
  readonly spec: { readonly parentRefs: readonly ParentReference[] } & Spec;
};

/** The props of every route. */
export type RouteProps = {
  readonly metadata: Metadata;
  readonly parentRefs: OneOrMore<string | ParentReference>;
};

/** The props of a route with rules. `backendRefs` alone are short for one rule that matches everything. */
export type RouteWithRulesProps<RuleProps, Backend> = RouteProps & {
  readonly hostnames?: OneOrMore<string>;
} & (
    | { readonly rules: OneOrMore<RuleProps>; readonly backendRefs?: never }
    | { readonly backendRefs: OneOrMore<Backend>; readonly rules?: never }
  );
