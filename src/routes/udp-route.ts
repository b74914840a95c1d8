import { routeOf } from './build.ts';
import type { Metadata } from './metadata.ts';
import type { BackendRef, OneOrMore, ParentReference, StreamRule } from './route.ts';

/** A UDPRoute as it would be written in YAML. */
export type UDPRoute = {
  readonly apiVersion: 'gateway.networking.k8s.io/v1';
  readonly kind: 'UDPRoute';
  readonly metadata: Metadata;
  readonly spec: {
    readonly parentRefs: readonly ParentReference[];
    readonly rules: readonly [StreamRule<'UDPRoute'>];
  };
};

/** What a UDPRoute is made of: it has one rule, of which the backends are all that matters. */
export type UDPRouteProps = {
  readonly metadata: Metadata;
  readonly parentRefs: OneOrMore<string | ParentReference>;
  readonly backendRefs: OneOrMore<BackendRef<'UDPRoute'>>;
  /** The name of the rule, for policies that mean it. */
  readonly ruleName?: string;
};

/**
 * A UDPRoute as it would be written in YAML, deeply frozen. Throws an AuthoringError where a backend does not fit,
 * or what is given is no UDPRoute.
 */
export function udpRoute(props: UDPRouteProps): UDPRoute {
  return routeOf('UDPRoute', props) as UDPRoute;
}
