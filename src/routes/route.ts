import type { RouteKind } from '../api/key.ts';
import type { goesWith } from './backend.ts';

/** One value, or a list of them. */
export type OneOrMore<T> = T | readonly T[];

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

/** The only rule of a route below HTTP. */
export type StreamRule<Kind extends 'TLSRoute' | 'TCPRoute' | 'UDPRoute'> = {
  readonly name?: string;
  readonly backendRefs: readonly BackendRef<Kind>[];
};
