import type { EndpointSelector, FailoverBackend, MeshRoutePolicySpec } from '../api/generated/authored.ts';
import type { API_VERSION } from '../api/generated/kinds.ts';
import { GROUP } from '../api/generated/kinds.ts';
import { ENVOY_GATEWAY_GROUP } from '../api/objects/backends.ts';
import { GATEWAY_GROUP } from '../api/objects/gateway-api.ts';
import type { RouteKind } from '../api/key.ts';
import { isRecord } from '../api/json.ts';
import type { Fields } from '../api/json.ts';
import type { Fault } from '../api/validation/fault.ts';
import { titleOf } from './authoring-error.ts';
import { asList, distinct, objectOf } from './build.ts';
import type { Metadata, OneOrMore } from './route.ts';

/** A route as far as a policy depends on it. */
type AnyRoute = {
  readonly kind: RouteKind;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: {
    readonly rules: readonly {
      readonly name?: string;
      readonly backendRefs?: readonly { readonly name: string }[];
    }[];
  };
};

/** A route that a policy applies to, or one of its rules; or a route that is declared elsewhere, as in YAML. */
export type PolicyTarget =
  | AnyRoute
  | { readonly route: AnyRoute; readonly rule: string }
  | { readonly kind: RouteKind; readonly name: string; readonly sectionName?: string };

/** The names of the backends that all targets have; any text where the compiler does not know them. */
export type BackendNameOf<Targets> = Targets extends readonly (infer Each extends PolicyTarget)[]
  ? CommonNameOf<Each>
  : CommonNameOf<Targets>;

/** Function parameters turn the union of the targets into an intersection of their names. */
type CommonNameOf<Target> = (Target extends unknown ? (name: NameOf<Target>) => void : never) extends (
  name: infer Name,
) => void
  ? Name extends string
    ? Name
    : never
  : never;

type NameOf<Target> = Target extends { readonly route: infer Route }
  ? NameOf<Route>
  : Target extends { readonly spec: { readonly rules: readonly (infer Rule)[] } }
    ? Rule extends { readonly backendRefs?: infer Refs }
      ? NonNullable<Refs> extends readonly { readonly name: infer Name extends string }[]
        ? Name
        : never
      : never
    : string;

/** A backend of a level: the name of one that the routes have, such an object as in YAML, or a Service beyond them. */
export type LevelBackend<Name extends string> =
  | Name
  | (Omit<FailoverBackend, 'kind' | 'name'> & {
      readonly kind: 'MeshEndpoints' | 'Backend';
      readonly name: Name;
    })
  | (Omit<FailoverBackend, 'kind' | 'port'> & { readonly kind?: 'Service'; readonly port: number });

/** Backends that are used together. */
export type PolicyLevel<Name extends string> = { readonly backends: OneOrMore<LevelBackend<Name>> };

/** The props of a MeshRoutePolicy: its metadata, and the fields of its spec. */
export type MeshRoutePolicyProps<Targets extends OneOrMore<PolicyTarget>> = {
  readonly metadata: Metadata;
  readonly targetRefs: Targets;
  readonly failover?: {
    /** In the order in which they are used. */
    readonly levels?: readonly PolicyLevel<BackendNameOf<Targets>>[];
    /** 1 to 100; about 72 by default. */
    readonly healthyPercent?: number;
  };
  readonly endpoints?: {
    /** Only endpoints with this metadata are used. */
    readonly require?: EndpointSelector;
    /** The first that an endpoint matches decides how early it is used. */
    readonly prefer?: OneOrMore<EndpointSelector>;
  };
};

/** A MeshRoutePolicy as in YAML. */
export type AuthoredMeshRoutePolicy = {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: 'MeshRoutePolicy';
  readonly metadata: Metadata;
  readonly spec: MeshRoutePolicySpec;
};

/**
 * A MeshRoutePolicy as in YAML, deeply frozen. Throws an AuthoringError with the faults that the API server and
 * `mesh-gateway check` would report, and where a level names a backend that a route does not have.
 */
export function meshRoutePolicy<const Targets extends OneOrMore<PolicyTarget>>(
  props: MeshRoutePolicyProps<Targets>,
): AuthoredMeshRoutePolicy {
  const given: unknown = props;
  const { metadata, targetRefs, failover, endpoints, ...rest } = isRecord(given) ? given : {};
  const faults: Fault[] = [];
  const targets = (asList(targetRefs) ?? []).map(targetOf);
  const namespace = isRecord(metadata) ? metadata['namespace'] : undefined;
  faults.push(...targets.flatMap((target, index) => faultsOfTarget(target, index, namespace)));
  const spec = {
    targetRefs: targetRefs === undefined ? undefined : targets.map(({ ref }) => ref),
    failover: isRecord(failover) ? withLevels(failover, { targets, namespace, faults }) : failover,
    endpoints: isRecord(endpoints) ? { ...endpoints, prefer: asList(endpoints['prefer']) } : endpoints,
    ...rest,
  };
  return objectOf('MeshRoutePolicy', metadata, spec, faults) as AuthoredMeshRoutePolicy;
}

/** A target as in YAML, with what is known of its route. */
type Target = {
  readonly ref: unknown;
  readonly title: string;
  readonly namespace?: unknown;
  /** The names of all rules; undefined for a route that is declared elsewhere. */
  readonly rules?: readonly unknown[];
  /** The backends of the targeted rules; undefined for a route that is declared elsewhere. */
  readonly backends?: readonly Fields[];
  readonly rule?: unknown;
};

function targetOf(given: unknown): Target {
  const { route = given, rule, ...others } = isRecord(given) ? given : {};
  const { kind, metadata, spec } = isRecord(route) ? route : {};
  if (!isRecord(metadata) || !isRecord(spec))
    return { ref: isRecord(given) ? { group: GATEWAY_GROUP, ...given } : given, title: 'the route' };
  const { name, namespace } = metadata;
  const rules = (asList(spec['rules']) ?? []).filter(isRecord);
  const targeted = rules.filter(each => rule === undefined || each['name'] === rule);
  return {
    // Unknown fields beside `route` stay, so that they are refused by name.
    ref: { group: GATEWAY_GROUP, kind, name, sectionName: rule, ...(route === given ? {} : others) },
    title: titleOf(String(kind), metadata),
    namespace,
    rule,
    rules: rules.map(each => each['name']),
    backends: targeted.flatMap(each => (asList(each['backendRefs']) ?? []).filter(isRecord)),
  };
}

function faultsOfTarget(
  { title, namespace, rule, rules }: Target,
  index: number,
  own: unknown,
): readonly Fault[] {
  if (!rules) return [];
  const refusal = (message: string) => faultAt(['spec', 'targetRefs', String(index)], message);
  const isElsewhere = namespace !== own;
  const named = rules.filter(name => typeof name === 'string');
  return [
    ...(isElsewhere
      ? [refusal(`${title} is in another namespace than the policy: a policy applies to routes of its own`)]
      : []),
    ...(rule === undefined || rules.includes(rule)
      ? []
      : [refusal(`${title} has no rule ${shown(rule)}; named are ${listed(named)}`)]),
  ];
}

type Context = {
  readonly targets: readonly Target[];
  readonly namespace: unknown;
  readonly faults: Fault[];
};

function withLevels(failover: Fields, context: Context): Fields {
  const { levels, ...rest } = failover;
  if (!Array.isArray(levels)) return failover;
  const written = levels.map((level: unknown, at) => {
    if (!isRecord(level)) return level;
    const backends = asList(level['backends'])?.flatMap((each, index) =>
      backendsOf(each, ['spec', 'failover', 'levels', String(at), 'backends', String(index)], context),
    );
    return { ...level, backends };
  });
  return { levels: written, ...rest };
}

/** As in YAML: a name becomes the backends of that name, of which a Service occurs once for each port. */
function backendsOf(given: unknown, steps: readonly string[], context: Context): readonly unknown[] {
  const backend = isRecord(given) ? { ...groupOf(given['kind']), ...given } : given;
  const isNamed = typeof backend === 'string' || (isRecord(backend) && isOfRoute(backend['kind']));
  if (!isNamed) return [backend];
  const name = isRecord(backend) ? backend['name'] : backend;
  const known = context.targets.filter(({ backends }) => backends !== undefined);
  const lacking = known.find(({ backends = [] }) => !backends.some(ref => isMeant(ref, backend)));
  const refuse = (message: string) => context.faults.push(faultAt(steps, message));
  if (lacking) {
    const names = (lacking.backends ?? []).map(ref => ref['name']);
    refuse(`${shown(name)} is not a backend of ${lacking.title}; it has ${listed(names)}`);
  }
  if (isRecord(backend)) return [backend];
  if (known.length === 0) {
    refuse(
      `${shown(name)} is a name, and the backends of the route are not known: write kind, name and port`,
    );
    return [];
  }
  const meant = known.flatMap(({ backends = [] }) => backends.filter(ref => isMeant(ref, backend)));
  return distinct(meant.map(asWritten));
}

function isOfRoute(kind: unknown): boolean {
  return kind === 'MeshEndpoints' || kind === 'Backend';
}

/** Whether a backendRef is the backend that a level names, by its name alone or by its kind as well. */
function isMeant(ref: Fields, backend: unknown): boolean {
  if (!isRecord(backend)) return ref['name'] === backend;
  return ref['name'] === backend['name'] && ref['kind'] === backend['kind'];
}

/** A backendRef as a level names it: a MeshEndpoints with all of its ports. */
function asWritten({ group, kind = 'Service', namespace, name, port }: Fields): Fields {
  return { group, kind, namespace, name, port: kind === 'Service' ? port : undefined };
}

function groupOf(kind: unknown): Fields {
  if (kind === 'MeshEndpoints') return { group: GROUP };
  return kind === 'Backend' ? { group: ENVOY_GATEWAY_GROUP } : {};
}

function shown(name: unknown): string {
  return typeof name === 'string' ? name : JSON.stringify(name);
}

function listed(names: readonly unknown[]): string {
  const distinct = [...new Set(names)];
  return distinct.length === 0 ? 'none' : distinct.slice(0, 10).join(' | ');
}

function faultAt(steps: readonly string[], message: string): Fault {
  const path = steps.reduce(
    (at, step) => (/^\d+$/.test(step) ? `${at}[${step}]` : at === '' ? step : `${at}.${step}`),
    '',
  );
  return { path, steps, message };
}
