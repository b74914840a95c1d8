import type { MeshEndpoint, MeshEndpointsSpec } from '../api/generated/authored.ts';
import type { API_VERSION } from '../api/generated/kinds.ts';
import { isRecord } from '../api/json.ts';
import { objectOf } from './build.ts';
import type { Metadata } from './route.ts';

/** The props of a MeshEndpoints: its metadata, and the fields of its spec. */
export type MeshEndpointsProps = { readonly metadata: Metadata } & MeshEndpointsSpec;

/** A MeshEndpoints as in YAML, whose name the compiler knows, and the ports, names and protocols of its endpoints. */
export type DeclaredMeshEndpoints<P extends MeshEndpointsProps> = {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: 'MeshEndpoints';
  readonly metadata: Metadata & Pick<P['metadata'], 'name'>;
  readonly spec: Omit<MeshEndpointsSpec, 'endpoints' | 'tagSelectors' | 'endpointTemplate'> &
    Pick<P, Extract<keyof P, 'tagSelectors' | 'endpointTemplate'>> &
    EndpointsOf<P>;
};

type EndpointsOf<P extends MeshEndpointsProps> = P extends {
  readonly endpoints: infer List extends readonly MeshEndpoint[];
}
  ? { readonly endpoints: { readonly [At in keyof List]: EndpointOf<List[At]> } }
  : Pick<P, Extract<keyof P, 'endpoints'>>;

type EndpointOf<E extends MeshEndpoint> = Omit<MeshEndpoint, 'name' | 'port' | 'protocol'> &
  Pick<E, 'name' | 'port' | 'protocol'>;

/** Refuses unknown fields, which an inferred type parameter would accept. */
type Exact<Shape, Given> = [UnknownIn<Shape, Given>] extends [never] ? unknown : Marked<Shape, Given>;

/** The names of unknown fields; computed first because it is much cheaper than `Marked`. */
type UnknownIn<Shape, Given> = Given extends readonly (infer Each)[]
  ? Shape extends readonly (infer Item)[]
    ? UnknownIn<Item, Each>
    : never
  : Given extends object
    ? {
        [Name in keyof Given]: Name extends keyof Shape
          ? UnknownIn<NonNullable<Shape[Name]>, Given[Name]>
          : Name;
      }[keyof Given]
    : never;

/** The given type with an error message in place of each unknown field. */
type Marked<Shape, Given> = Given extends readonly unknown[]
  ? Shape extends readonly (infer Item)[]
    ? { readonly [At in keyof Given]: Marked<Item, Given[At]> }
    : Given
  : Given extends object
    ? {
        readonly [Name in keyof Given]: Name extends keyof Shape
          ? Marked<NonNullable<Shape[Name]>, Given[Name]>
          : { readonly unknown: `${Name & string} is not a field here` };
      }
    : Given;

/**
 * A MeshEndpoints as in YAML, deeply frozen. Throws an AuthoringError with the faults that the
 * API server and `mesh-gateway check` would report.
 */
export function meshEndpoints<const P extends MeshEndpointsProps>(
  props: P & Exact<MeshEndpointsProps, P>,
): DeclaredMeshEndpoints<P> {
  const given: unknown = props;
  const { metadata, ...spec } = isRecord(given) ? given : {};
  return objectOf('MeshEndpoints', metadata, spec) as DeclaredMeshEndpoints<P>;
}
