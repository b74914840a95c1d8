import { routeOf } from './build.ts';
import type {
  BackendRef,
  CommonFilter,
  OneOrMore,
  RouteObject,
  RouteWithRulesProps,
  SessionPersistence,
} from './route.ts';

/** A GRPCRoute as it would be written in YAML. */
export type GRPCRoute = RouteObject<
  'GRPCRoute',
  {
    readonly hostnames?: readonly string[];
    readonly rules: readonly GRPCRouteRule[];
  }
>;

/** Which calls a rule takes, what is done to them, and where they go. */
export type GRPCRouteRule = {
  readonly name?: string;
  /** One of them must match; without any, all calls do. */
  readonly matches?: readonly GRPCRouteMatch[];
  readonly filters?: readonly GRPCRouteFilter[];
  readonly backendRefs?: readonly GRPCBackendRef[];
  readonly sessionPersistence?: SessionPersistence;
};

/** A backend of a gRPC rule. Envoy Gateway ignores filters of a MeshEndpoints: they belong to the rule. */
export type GRPCBackendRef = BackendRef<'GRPCRoute'> & { readonly filters?: readonly GRPCRouteFilter[] };

/** Conditions that must all hold. */
export type GRPCRouteMatch = {
  readonly method?: GRPCMethodMatch;
  readonly headers?: readonly {
    readonly type?: 'Exact' | 'RegularExpression';
    readonly name: string;
    readonly value: string;
  }[];
};

/** Which service or method is called. */
export type GRPCMethodMatch = {
  readonly type?: 'Exact' | 'RegularExpression';
  readonly service?: string;
  readonly method?: string;
};

/** What is done to calls and answers. */
export type GRPCRouteFilter = CommonFilter<'GRPCRoute'>;

/** What a GRPCRoute is made of. `backendRefs` alone stand for one rule that takes all calls. */
export type GRPCRouteProps = RouteWithRulesProps<GRPCRouteRuleProps, GRPCBackendRef>;

/** A rule in which one backend needs no list. */
export type GRPCRouteRuleProps = Omit<GRPCRouteRule, 'backendRefs'> & {
  readonly backendRefs?: OneOrMore<GRPCBackendRef>;
};

/**
 * A GRPCRoute as it would be written in YAML, deeply frozen. Throws an AuthoringError where a backend does not fit,
 * or what is given is no GRPCRoute.
 */
export function grpcRoute(props: GRPCRouteProps): GRPCRoute {
  return routeOf('GRPCRoute', props) as GRPCRoute;
}
