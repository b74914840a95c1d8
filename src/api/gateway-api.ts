import type { ObjectMeta } from './generated/types.ts';
import type { RouteKind } from './key.ts';

/** The API group of Gateway API. */
export const GATEWAY_GROUP = 'gateway.networking.k8s.io';

/** What of metadata is kept of objects that are not ours. */
export type Metadata = Pick<
  ObjectMeta,
  | 'name'
  | 'namespace'
  | 'uid'
  | 'generation'
  | 'resourceVersion'
  | 'labels'
  | 'annotations'
  | 'deletionTimestamp'
>;

/** Where a route attaches, with all defaults filled in. */
export type ParentRef = {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly sectionName?: string;
  readonly port?: number;
};

/** Where a rule sends traffic, with all defaults filled in; the group of a Service is empty. */
export type BackendRef = {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly port?: number;
  readonly weight: number;
  /** Whether requests to it pass filters of its own. */
  readonly hasFilters?: true;
};

/** A rule of a route. */
export type RouteRule = {
  readonly name?: string;
  readonly backendRefs: readonly BackendRef[];
  /** The backends of RequestMirror filters. */
  readonly mirrors: readonly BackendRef[];
};

/** A route of any of the five kinds, in whatever version it was served, in one form. */
export type Route = {
  readonly kind: RouteKind;
  readonly apiVersion: string;
  readonly metadata: Metadata;
  readonly hostnames: readonly string[];
  readonly parentRefs: readonly ParentRef[];
  readonly rules: readonly RouteRule[];
};

/** A listener of a Gateway. */
export type Listener = {
  readonly name: string;
  readonly port: number;
  readonly protocol: string;
  readonly hostname?: string;
};

/** A Gateway. */
export type Gateway = {
  readonly kind: 'Gateway';
  readonly apiVersion: string;
  readonly metadata: Metadata;
  readonly gatewayClassName: string;
  readonly listeners: readonly Listener[];
};

/** A class of Gateways. */
export type GatewayClass = {
  readonly kind: 'GatewayClass';
  readonly apiVersion: string;
  readonly metadata: Metadata;
  readonly controllerName: string;
};

/** A namespace, for its labels. */
export type Namespace = {
  readonly kind: 'Namespace';
  readonly apiVersion: string;
  readonly metadata: Metadata;
};

/** Who may refer to objects of a namespace from another. */
export type ReferenceGrant = {
  readonly kind: 'ReferenceGrant';
  readonly apiVersion: string;
  readonly metadata: Metadata;
  readonly from: readonly { readonly group: string; readonly kind: string; readonly namespace: string }[];
  readonly to: readonly { readonly group: string; readonly kind: string; readonly name?: string }[];
};
