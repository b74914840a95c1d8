import { routeOf } from './build.ts';
import type { BackendRef, OneOrMore, RouteObject, RouteProps } from './route.ts';

type StreamKind = 'TLSRoute' | 'TCPRoute' | 'UDPRoute';

/** The only rule of a route below HTTP. */
export type StreamRule<Kind extends StreamKind> = {
  readonly name?: string;
  readonly backendRefs: readonly BackendRef<Kind>[];
};

/** A TCPRoute as it would be written in YAML. */
export type TCPRoute = RouteObject<'TCPRoute', { readonly rules: readonly [StreamRule<'TCPRoute'>] }>;

/** A UDPRoute as it would be written in YAML. */
export type UDPRoute = RouteObject<'UDPRoute', { readonly rules: readonly [StreamRule<'UDPRoute'>] }>;

/** A TLSRoute as it would be written in YAML. */
export type TLSRoute = RouteObject<
  'TLSRoute',
  {
    /** The names that clients ask for by SNI. */
    readonly hostnames: readonly string[];
    readonly rules: readonly [StreamRule<'TLSRoute'>];
  }
>;

/** Such a route has one rule, of which the backends are all that matters. */
type StreamProps<Kind extends StreamKind> = RouteProps & {
  readonly backendRefs: OneOrMore<BackendRef<Kind>>;
  /** The name of the rule, for policies that mean it. */
  readonly ruleName?: string;
};

/** What a TCPRoute is made of. */
export type TCPRouteProps = StreamProps<'TCPRoute'>;

/** What a UDPRoute is made of. */
export type UDPRouteProps = StreamProps<'UDPRoute'>;

/** What a TLSRoute is made of. */
export type TLSRouteProps = StreamProps<'TLSRoute'> & {
  /** The names that clients ask for by SNI. */
  readonly hostnames: OneOrMore<string>;
};

/**
 * A TCPRoute as it would be written in YAML, deeply frozen. Throws an AuthoringError where a backend does not fit,
 * or what is given is no TCPRoute.
 */
export function tcpRoute(props: TCPRouteProps): TCPRoute {
  return routeOf('TCPRoute', props) as TCPRoute;
}

/** A UDPRoute, in the same way. */
export function udpRoute(props: UDPRouteProps): UDPRoute {
  return routeOf('UDPRoute', props) as UDPRoute;
}

/** A TLSRoute, in the same way. */
export function tlsRoute(props: TLSRouteProps): TLSRoute {
  return routeOf('TLSRoute', props) as TLSRoute;
}
