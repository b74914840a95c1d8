import { GROUP } from '../api/generated/kinds.ts';
import type { Protocol } from '../api/generated/types.ts';
import { ROUTE_KINDS } from '../api/key.ts';
import type { RouteKind } from '../api/key.ts';
import { isRecord } from '../api/json.ts';
import { AuthoringError, titleOf } from './authoring-error.ts';
import type { Declaring, DeclaredAt, Entry, PortAt, ProtocolAt, RouteAt } from './declared.ts';
import { supports, mismatch } from './protocols.ts';
import type { Mismatch, RouteOf } from './protocols.ts';

/** The key of a hidden field: which kinds of routes support the backend. It is not in JSON, YAML or copies. */
export const supportedBy: unique symbol = Symbol.for(`${GROUP}/supportedBy`) as never;

/**
 * A backendRef to a port of a MeshEndpoints, typed by the port, its protocol, the kinds of routes that support it, and the
 * name of the MeshEndpoints.
 */
export type MeshBackendRef<
  Port extends number,
  P extends Protocol,
  Kind extends RouteKind,
  Name extends string = string,
> = {
  readonly group: typeof GROUP;
  readonly kind: 'MeshEndpoints';
  readonly name: Name;
  readonly namespace?: string;
  readonly port: Port;
  readonly weight?: number;
  readonly [supportedBy]: { readonly [K in RouteKind]: K extends Kind ? 'fits' : MismatchAmong<K, P, Port> };
};

type MismatchAmong<Kind extends RouteKind, P extends Protocol, Port extends number> = P extends Protocol
  ? Kind extends RouteOf<P>
    ? never
    : Mismatch<Kind, P, Port>
  : never;

/** The other fields of a backendRef. */
export type BackendOptions = {
  /** The share of the rule's traffic among its backends, 0 to 1000000; 1 by default. */
  readonly weight?: number;
};

/**
 * A backendRef to all endpoints of a port. The name of an endpoint stands for its port: other endpoints with that port
 * share the traffic. It has the namespace of the endpoints, which routes of the same namespace omit.
 */
export function backend<const M extends Declaring, const At extends number | string>(
  endpoints: M,
  at: DeclaredAt<M, At>,
  options: BackendOptions = {},
): MeshBackendRef<
  PortAt<M, At>,
  ProtocolAt<M, PortAt<M, At>>,
  RouteAt<M, PortAt<M, At>>,
  M['metadata']['name']
> {
  const declared = declaring(endpoints);
  const { weight, ...unknown } = options;
  const [misspelt] = Object.keys(unknown);
  if (misspelt !== undefined)
    throw refusal('backend()', `${misspelt} is not an option: the option is weight`);
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
  Object.defineProperty(ref, supportedBy, { value: verdicts(spec, port) });
  return Object.freeze(ref) as never;
}

type Spec = Declaring['spec'];

/** Callers without types may pass anything, such as a construct instead of the object. */
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
  throw refusal('backend()', 'the first argument is not a MeshEndpoints: pass what meshEndpoints() returned');
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

/** The port and protocol of discovered endpoints; undefined without tagSelectors. */
function discoveredBy({
  tagSelectors = [],
  endpointTemplate,
}: Spec): Partial<Omit<Entry, 'name'>> | undefined {
  return tagSelectors.length === 0 ? undefined : (endpointTemplate ?? {});
}

/** The known protocols of the endpoints with a port. */
function protocolsAt(spec: Spec, port: number): readonly Protocol[] {
  const listed = (spec.endpoints ?? []).filter(endpoint => endpoint.port === port);
  const discovered = discoveredBy(spec);
  const hasPort = discovered?.port === port || (discovered && listed.length === 0);
  const found = hasPort && discovered.protocol !== undefined ? [discovered.protocol] : [];
  return [...new Set([...listed.map(({ protocol }) => protocol), ...found])];
}

function verdicts(spec: Spec, port: number): Readonly<Record<RouteKind, string>> {
  const protocols = protocolsAt(spec, port);
  const verdictOf = (kind: RouteKind) => {
    const wrong = protocols.find(protocol => !supports(kind, protocol));
    return wrong === undefined ? 'fits' : mismatch(kind, wrong, port);
  };
  return Object.fromEntries(ROUTE_KINDS.map(kind => [kind, verdictOf(kind)])) as Record<RouteKind, string>;
}

const MAX_LISTED = 10;

function listed(values: readonly (number | string)[]): string {
  const distinct = [...new Set(values)];
  const some = distinct.length > MAX_LISTED ? [...distinct.slice(0, MAX_LISTED), '...'] : distinct;
  return some.length === 0 ? 'none' : some.join(' | ');
}

function notDeclared(
  { kind, metadata }: Declaring,
  subject: string,
  declared: readonly (number | string)[],
): AuthoringError {
  return refusal(titleOf(kind, metadata), `${subject} is not declared; declared are ${listed(declared)}`);
}

function refusal(title: string, message: string): AuthoringError {
  return new AuthoringError('NotDeclared', title, [{ path: '', steps: [], message }]);
}
