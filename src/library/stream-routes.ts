import { routeOf } from './build.ts';
import type { BackendRef, OneOrMore, RouteObject, RouteProps } from './route.ts';

type StreamKind = 'TLSRoute' | 'TCPRoute' | 'UDPRoute';

/** The only rule of a TLSRoute, TCPRoute or UDPRoute. */
export type StreamRule<Kind extends StreamKind, Name extends string = string> = {
  readonly name?: string;
  readonly backendRefs: readonly BackendRef<Kind, Name>[];
};

/** A TCPRoute as in YAML. */
export type TCPRoute<Name extends string = string> = RouteObject<
  'TCPRoute',
  { readonly rules: readonly [StreamRule<'TCPRoute', Name>] }
>;

/** A UDPRoute as in YAML. */
export type UDPRoute<Name extends string = string> = RouteObject<
  'UDPRoute',
  { readonly rules: readonly [StreamRule<'UDPRoute', Name>] }
>;

/** A TLSRoute as in YAML. */
export type TLSRoute<Name extends string = string> = RouteObject<
  'TLSRoute',
  {
    /** The SNI names that clients send. */
    readonly hostnames: readonly string[];
    readonly rules: readonly [StreamRule<'TLSRoute', Name>];
  }
>;

/** Such a route has one rule, so its backendRefs stand directly in the props. */
type StreamProps<Kind extends StreamKind, Name extends string> = RouteProps & {
  readonly backendRefs: OneOrMore<BackendRef<Kind, Name>>;
  /** The name of the rule, for policies that target it. */
  readonly ruleName?: string;
};

/** The props of a TCPRoute. */
export type TCPRouteProps<Name extends string = string> = StreamProps<'TCPRoute', Name>;

/** The props of a UDPRoute. */
export type UDPRouteProps<Name extends string = string> = StreamProps<'UDPRoute', Name>;

/** The props of a TLSRoute. */
export type TLSRouteProps<Name extends string = string> = StreamProps<'TLSRoute', Name> & {
  /** The SNI names that clients send. */
  readonly hostnames: OneOrMore<string>;
};

/**
 * A TCPRoute as in YAML, deeply frozen. Throws an AuthoringError where the TCPRoute is invalid or does not
 * support a backend.
 */
export function tcpRoute<Name extends string>(props: TCPRouteProps<Name>): TCPRoute<Name> {
  return routeOf('TCPRoute', props) as TCPRoute<Name>;
}

/** The same for a UDPRoute. */
export function udpRoute<Name extends string>(props: UDPRouteProps<Name>): UDPRoute<Name> {
  return routeOf('UDPRoute', props) as UDPRoute<Name>;
}

/** The same for a TLSRoute. */
export function tlsRoute<Name extends string>(props: TLSRouteProps<Name>): TLSRoute<Name> {
  return routeOf('TLSRoute', props) as TLSRoute<Name>;
}
