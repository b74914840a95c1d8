import { routeOf } from './build.ts';
import type {
  BackendRef,
  CommonFilter,
  OneOrMore,
  RouteObject,
  RouteWithRulesProps,
  SessionPersistence,
} from './route.ts';

/** A GRPCRoute as in YAML; the compiler knows the names of its backends. */
export type GRPCRoute<Name extends string = string> = RouteObject<
  'GRPCRoute',
  {
    readonly hostnames?: readonly string[];
    readonly rules: readonly GRPCRouteRule<Name>[];
  }
>;

/** A rule: matches, filters and backends. */
export type GRPCRouteRule<Name extends string = string> = {
  readonly name?: string;
  /** A call must match one of them; all calls match if there are none. */
  readonly matches?: readonly GRPCRouteMatch[];
  readonly filters?: readonly GRPCRouteFilter[];
  readonly backendRefs?: readonly GRPCBackendRef<Name>[];
  readonly sessionPersistence?: SessionPersistence;
};

/** A backend of a gRPC rule. A MeshEndpoints has only filters that modify headers: write others on the rule. */
export type GRPCBackendRef<Name extends string = string> = BackendRef<'GRPCRoute', Name> & {
  readonly filters?: readonly GRPCRouteFilter[];
};

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

/** Filters of calls and responses. */
export type GRPCRouteFilter = CommonFilter<'GRPCRoute'>;

/** The props of a GRPCRoute. `backendRefs` alone are short for one rule that matches all calls. */
export type GRPCRouteProps<Name extends string = string> = RouteWithRulesProps<
  GRPCRouteRuleProps<Name>,
  GRPCBackendRef<Name>
>;

/** A rule whose backendRefs may be a single one. */
export type GRPCRouteRuleProps<Name extends string = string> = Omit<GRPCRouteRule, 'backendRefs'> & {
  readonly backendRefs?: OneOrMore<GRPCBackendRef<Name>>;
};

/**
 * A GRPCRoute as in YAML, deeply frozen. Throws an AuthoringError where the GRPCRoute is invalid or does not
 * support a backend.
 */
export function grpcRoute<Name extends string>(props: GRPCRouteProps<Name>): GRPCRoute<Name> {
  return routeOf('GRPCRoute', props) as GRPCRoute<Name>;
}
