import { routeOf } from './build.ts';
import type { Metadata } from './metadata.ts';
import type { BackendRef, OneOrMore, ParentReference, StreamRule } from './route.ts';

/** A TCPRoute as it would be written in YAML. */
export type TCPRoute = {
  readonly apiVersion: 'gateway.networking.k8s.io/v1';
  readonly kind: 'TCPRoute';
  readonly metadata: Metadata;
  readonly spec: {
    readonly parentRefs: readonly ParentReference[];
    readonly rules: readonly [StreamRule<'TCPRoute'>];
  };
};

/** What a TCPRoute is made of: it has one rule, of which the backends are all that matters. */
export type TCPRouteProps = {
  readonly metadata: Metadata;
  readonly parentRefs: OneOrMore<string | ParentReference>;
  readonly backendRefs: OneOrMore<BackendRef<'TCPRoute'>>;
  /** The name of the rule, for policies that mean it. */
  readonly ruleName?: string;
};

/**
 * A TCPRoute as it would be written in YAML, deeply frozen. Throws an AuthoringError where a backend does not fit,
 * or what is given is no TCPRoute.
 */
export function tcpRoute(props: TCPRouteProps): TCPRoute {
  return routeOf('TCPRoute', props) as TCPRoute;
}
