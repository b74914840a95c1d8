import type { RouteKind } from '../api/key.ts';
import type { BackendObjectReference } from './route.ts';

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
