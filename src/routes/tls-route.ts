import { routeOf } from './build.ts';
import type { Metadata } from './metadata.ts';
import type { BackendRef, OneOrMore, ParentReference, StreamRule } from './route.ts';

/** A TLSRoute as it would be written in YAML. */
export type TLSRoute = {
  readonly apiVersion: 'gateway.networking.k8s.io/v1';
  readonly kind: 'TLSRoute';
  readonly metadata: Metadata;
  readonly spec: {
    readonly parentRefs: readonly ParentReference[];
    /** The names that clients ask for by SNI. */
    readonly hostnames: readonly string[];
    readonly rules: readonly [StreamRule<'TLSRoute'>];
  };
};

/** What a TLSRoute is made of: it has one rule, of which the backends are all that matters. */
export type TLSRouteProps = {
  readonly metadata: Metadata;
  readonly parentRefs: OneOrMore<string | ParentReference>;
  /** The names that clients ask for by SNI. */
  readonly hostnames: OneOrMore<string>;
  readonly backendRefs: OneOrMore<BackendRef<'TLSRoute'>>;
  /** The name of the rule, for policies that mean it. */
  readonly ruleName?: string;
};

/**
 * A TLSRoute as it would be written in YAML, deeply frozen. Throws an AuthoringError where a backend does not fit,
 * or what is given is no TLSRoute.
 */
export function tlsRoute(props: TLSRouteProps): TLSRoute {
  return routeOf('TLSRoute', props) as TLSRoute;
}
