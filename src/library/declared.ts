import type { Protocol } from '../api/generated/types.ts';
import type { RouteKind } from '../api/key.ts';
import type { RouteOf } from './protocols.ts';

/** The fields of an endpoint that decide which routes support it. */
export type Entry = { readonly name: string; readonly port: number; readonly protocol: Protocol };

/** The fields of a MeshEndpoints that decide which routes support its endpoints. */
export type Declaring = {
  readonly kind: 'MeshEndpoints';
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: {
    readonly endpoints?: readonly Entry[];
    readonly tagSelectors?: readonly unknown[];
    readonly endpointTemplate?: { readonly port?: number; readonly protocol?: Protocol };
  };
};

/**
 * The port or endpoint name, if the object declares it; else an error message that lists those that it declares. A type
 * that is not a literal must be one of those, so that editors can complete it.
 */
export type DeclaredAt<M extends Declaring, At extends number | string> = number extends At
  ? EntryOf<M>['port'] | (string extends At ? EntryOf<M>['name'] : never)
  : string extends At
    ? EntryOf<M>['name']
    : [PortAt<M, At>] extends [never]
      ? NotDeclared<M, At>
      : At;

/** The port, given by number or by the name of an endpoint. */
export type PortAt<M extends Declaring, At extends number | string> = At extends number
  ? [EntryAt<EntryOf<M>, At>] extends [never]
    ? never
    : At
  : PortOfName<ListOf<M>[number], At>;

/** The protocols of the endpoints with a port, as far as the compiler knows. */
export type ProtocolAt<M extends Declaring, Port extends number> = CertainOrPossibleAt<
  EntryOf<M>,
  Port
>['protocol'];

/**
 * The kinds of routes that support a port: all endpoints that certainly have it; else any that may have it, because what
 * the compiler does not know is checked at run time.
 */
export type RouteAt<M extends Declaring, Port extends number> = [CertainAt<EntryOf<M>, Port>] extends [never]
  ? RouteOf<EntryAt<EntryOf<M>, Port>['protocol']>
  : {
      [Kind in RouteKind]: [MismatchOf<Kind, CertainAt<EntryOf<M>, Port>>] extends [never] ? Kind : never;
    }[RouteKind];

type ListOf<M extends Declaring> = M['spec'] extends { readonly endpoints?: infer List }
  ? NonNullable<List> extends infer Found extends readonly Entry[]
    ? Found
    : readonly []
  : readonly [];

type EntryOf<M extends Declaring> =
  | ListOf<M>[number]
  | (M['spec'] extends { readonly tagSelectors?: infer Selectors }
      ? NonNullable<Selectors> extends readonly [unknown, ...unknown[]]
        ? DiscoveredBy<M>
        : NonNullable<Selectors> extends readonly []
          ? never
          : NonNullable<Selectors> extends readonly unknown[]
            ? DiscoveredBy<M>
            : never
      : never);

/** Discovered devices have the port and protocol of endpointTemplate, or any. */
type DiscoveredBy<M extends Declaring> = M['spec'] extends { readonly endpointTemplate: infer Template }
  ? {
      readonly name: never;
      readonly port: Template extends { readonly port: infer Port extends number } ? Port : number;
      readonly protocol: Template extends { readonly protocol: infer P extends Protocol } ? P : Protocol;
    }
  : { readonly name: never; readonly port: number; readonly protocol: Protocol };

/** Entries that may have a port: an entry whose port is not known as a literal may have any. */
type EntryAt<E extends Entry, Port extends number> = E extends Entry
  ? Port extends E['port']
    ? E
    : never
  : never;

/** Entries that have a port for certain. */
type CertainAt<E extends Entry, Port extends number> = E extends Entry
  ? E['port'] extends Port
    ? E
    : never
  : never;

type PortOfName<E extends Entry, Name> = E extends Entry
  ? Name extends E['name']
    ? E['port']
    : never
  : never;

type CertainOrPossibleAt<E extends Entry, Port extends number> = [CertainAt<E, Port>] extends [never]
  ? EntryAt<E, Port>
  : CertainAt<E, Port>;

type MismatchOf<Kind extends RouteKind, E extends Entry> = E extends Entry
  ? Kind extends RouteOf<E['protocol']>
    ? never
    : E
  : never;

type NotDeclared<M extends Declaring, At extends number | string> = At extends number
  ? `port ${At} is not declared; declared are ${Listed<M, 'port'>}`
  : `endpoint ${At} is not declared; declared are ${Listed<M, 'name'>}`;

type Listed<M extends Declaring, Field extends 'name' | 'port'> = ListedOf<
  ListOf<M>,
  Field,
  Field extends 'port' ? Exclude<EntryOf<M>['port'], ListOf<M>[number]['port']> : never
>;

/** The distinct ports or names of a list, in its order, and then those of discovered endpoints. */
type ListedOf<List extends readonly Entry[], Field extends 'name' | 'port', More extends number> =
  Distinct<List, Field> extends infer Values extends readonly (number | string)[]
    ? [More] extends [never]
      ? Values extends readonly []
        ? 'none'
        : Piped<Values>
      : Piped<[...Values, More]>
    : never;

type Distinct<
  List extends readonly Entry[],
  Field extends 'name' | 'port',
  Found extends readonly (number | string)[] = [],
> = Found['length'] extends 10
  ? [...Found, '...']
  : List extends readonly [infer First extends Entry, ...infer Rest extends readonly Entry[]]
    ? First[Field] extends Found[number]
      ? Distinct<Rest, Field, Found>
      : Distinct<Rest, Field, [...Found, First[Field]]>
    : List extends readonly []
      ? Found
      : [...Found, List[number][Field]];

type Piped<Values extends readonly (number | string)[]> = Values extends readonly [
  infer First extends number | string,
  ...infer Rest extends readonly (number | string)[],
]
  ? Rest extends readonly []
    ? `${First}`
    : `${First} | ${Piped<Rest>}`
  : '';
