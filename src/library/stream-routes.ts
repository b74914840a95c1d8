import { routeOf } from './build.ts';
import type { BackendRef, OneOrMore, RouteObject, RouteProps } from './route.ts';

type StreamKind = 'TLSRoute' | 'TCPRoute' | 'UDPRoute';

/** The only rule of a TLSRoute, TCPRoute or UDPRoute. */
export type StreamRule<Kind extends StreamKind> = {
  readonly name?: string;
  readonly backendRefs: readonly BackendRef<Kind>[];
};

/** A TCPRoute as in YAML. */
export type TCPRoute = RouteObject<'TCPRoute', { readonly rules: readonly [StreamRule<'TCPRoute'>] }>;

/** A UDPRoute as in YAML. */
export type UDPRoute = RouteObject<'UDPRoute', { readonly rules: readonly [StreamRule<'UDPRoute'>] }>;

/** A TLSRoute as in YAML. */
export type TLSRoute = RouteObject<
  'TLSRoute',
  {
    /** The SNI names that clients send. */
    readonly hostnames: readonly string[];
    readonly rules: readonly [StreamRule<'TLSRoute'>];
  }
>;

/** Such a route has one rule, so its backendRefs stand directly in the props. */
type StreamProps<Kind extends StreamKind> = RouteProps & {
  readonly backendRefs: OneOrMore<BackendRef<Kind>>;
  /** The name of the rule, for policies that target it. */
  readonly ruleName?: string;
};

/** The props of a TCPRoute. */
export type TCPRouteProps = StreamProps<'TCPRoute'>;

/** The props of a UDPRoute. */
export type UDPRouteProps = StreamProps<'UDPRoute'>;

/** The props of a TLSRoute. */
export type TLSRouteProps = StreamProps<'TLSRoute'> & {
  /** The SNI names that clients send. */
  readonly hostnames: OneOrMore<string>;
};

/**
 * A TCPRoute as in YAML, deeply frozen. Throws an AuthoringError where the TCPRoute is invalid or does not
 * support a backend.
 */
export function tcpRoute(props: TCPRouteProps): TCPRoute {
  return routeOf('TCPRoute', props) as TCPRoute;
}

/** The same for a UDPRoute. */
export function udpRoute(props: UDPRouteProps): UDPRoute {
  return routeOf('UDPRoute', props) as UDPRoute;
}

/** The same for a TLSRoute. */
export function tlsRoute(props: TLSRouteProps): TLSRoute {
  return routeOf('TLSRoute', props) as TLSRoute;
}
