import { GROUP } from '../api/generated/kinds.ts';
import type { Protocol } from '../api/generated/types.ts';
import { ROUTE_KINDS } from '../api/key.ts';
import type { RouteKind } from '../api/key.ts';
import { isRecord } from '../api/json.ts';
import { AuthoringError, titleOf } from './authoring-error.ts';
import type { Declaring, DeclaredAt, Entry, PortAt, ProtocolAt, RouteAt } from './declared.ts';
import { isFit, misfit } from './protocols.ts';
import type { Misfit, RouteOf } from './protocols.ts';

/** Tells routes whether a backend fits them. It is no part of the data: not in JSON, YAML or copies. */
export const goesWith: unique symbol = Symbol.for(`${GROUP}/goesWith`) as never;

/** A reference to a MeshEndpoints as it would be written in a route: to which port, with which protocol, for which routes. */
export type MeshBackendRef<Port extends number, P extends Protocol, Kind extends RouteKind> = {
  readonly group: typeof GROUP;
  readonly kind: 'MeshEndpoints';
  readonly name: string;
  readonly namespace?: string;
  readonly port: Port;
  readonly weight?: number;
  readonly [goesWith]: { readonly [K in RouteKind]: K extends Kind ? 'fits' : MisfitAmong<K, P, Port> };
};

type MisfitAmong<Kind extends RouteKind, P extends Protocol, Port extends number> = P extends Protocol
  ? Kind extends RouteOf<P>
    ? never
    : Misfit<Kind, P, Port>
  : never;

/** What a reference says beside what it refers to. */
export type BackendOptions = {
  /** The share of the rule's traffic among its backends, 0 to 1000000; 1 if not given. */
  readonly weight?: number;
};

/**
 * A reference to the endpoints of a port. The name of an endpoint stands for its port, so that other endpoints with
 * that port share the traffic. It has the namespace of the endpoints; routes of that namespace leave it out.
 */
export function backend<const M extends Declaring, const At extends number | string>(
  endpoints: M,
  at: DeclaredAt<M, At>,
  options: BackendOptions = {},
): MeshBackendRef<PortAt<M, At>, ProtocolAt<M, PortAt<M, At>>, RouteAt<M, PortAt<M, At>>> {
  const declared = declaring(endpoints);
  const { weight, ...unknown } = options;
  const [misspelt] = Object.keys(unknown);
  if (misspelt !== undefined) throw refusal('backend()', `${misspelt} is not an option: there is weight`);
  const { metadata, spec } = declared;
  const port = portAt(declared, at);
  const ref = {
    group: GROUP,
    kind: 'MeshEndpoints',
    name: metadata.name,
    ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
    port,
    ...(weight === undefined ? {} : { weight }),
  };
  Object.defineProperty(ref, goesWith, { value: verdicts(spec, port) });
  return Object.freeze(ref) as never;
}

type Spec = Declaring['spec'];

/** Callers without types may give anything, such as a construct in place of the object that it was made of. */
function declaring(given: unknown): Declaring {
  const { kind, metadata, spec } = isRecord(given) ? given : {};
  const isDeclaring =
    kind === 'MeshEndpoints' &&
    isRecord(metadata) &&
    typeof metadata['name'] === 'string' &&
    isRecord(spec) &&
    (spec['endpoints'] === undefined ||
      (Array.isArray(spec['endpoints']) && spec['endpoints'].every(isRecord)));
  if (isDeclaring) return given as Declaring;
  throw refusal('backend()', 'is not given a MeshEndpoints: give what meshEndpoints() returned');
}

function portAt(declared: Declaring, at: unknown): number {
  const { spec } = declared;
  const { endpoints = [] } = spec;
  if (typeof at === 'string') {
    const named = endpoints.find(({ name }) => name === at);
    if (named) return named.port;
    throw notDeclared(
      declared,
      `endpoint ${at}`,
      endpoints.map(({ name }) => name),
    );
  }
  const discovered = discoveredBy(spec);
  const ports = endpoints.map(({ port }) => port);
  const isAny = discovered && discovered.port === undefined;
  if (typeof at === 'number' && (isAny || ports.includes(at) || discovered?.port === at)) return at;
  const all = discovered?.port === undefined ? ports : [...ports, discovered.port];
  throw notDeclared(declared, `port ${String(at)}`, all);
}

/** What is known of endpoints that are found by their tags, where any are. */
function discoveredBy({
  tagSelectors = [],
  endpointTemplate,
}: Spec): Partial<Omit<Entry, 'name'>> | undefined {
  return tagSelectors.length === 0 ? undefined : (endpointTemplate ?? {});
}

/** The protocols that all endpoints of a port are known to have. */
function protocolsAt(spec: Spec, port: number): readonly Protocol[] {
  const listed = (spec.endpoints ?? []).filter(endpoint => endpoint.port === port);
  const discovered = discoveredBy(spec);
  const isMeant = discovered?.port === port || (discovered && listed.length === 0);
  const found = isMeant && discovered.protocol !== undefined ? [discovered.protocol] : [];
  return [...new Set([...listed.map(({ protocol }) => protocol), ...found])];
}

function verdicts(spec: Spec, port: number): Readonly<Record<RouteKind, string>> {
  const protocols = protocolsAt(spec, port);
  const verdictOf = (kind: RouteKind) => {
    const wrong = protocols.find(protocol => !isFit(kind, protocol));
    return wrong === undefined ? 'fits' : misfit(kind, wrong, port);
  };
  return Object.fromEntries(ROUTE_KINDS.map(kind => [kind, verdictOf(kind)])) as Record<RouteKind, string>;
}

const MOST_TOLD = 10;

function told(values: readonly (number | string)[]): string {
  const distinct = [...new Set(values)];
  const some = distinct.length > MOST_TOLD ? [...distinct.slice(0, MOST_TOLD), '...'] : distinct;
  return some.length === 0 ? 'none' : some.join(' | ');
}

function notDeclared(
  { kind, metadata }: Declaring,
  subject: string,
  declared: readonly (number | string)[],
): AuthoringError {
  return refusal(titleOf(kind, metadata), `${subject} is not declared; declared are ${told(declared)}`);
}

function refusal(title: string, message: string): AuthoringError {
  return new AuthoringError('NotDeclared', title, [{ path: '', steps: [], message }]);
}
