/** Any object of a cluster. */
export type KubeObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: KubeMetadata;
  readonly [field: string]: unknown;
};

/** The metadata that is read here. */
type KubeMetadata = {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
};

/** A kind, in all namespaces unless one is named. */
export type KubeType = { readonly apiVersion: string; readonly kind: string; readonly namespace?: string };

/** A reference to an object. */
export type KubeRef = KubeType & { readonly name: string };

/** The reference to an object that has a name. */
export function refOf({ apiVersion, kind, metadata: { name = '', namespace } }: KubeObject): KubeRef {
  return { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

/** A reference as text: Deployment mesh-system/mesh-operator. */
export function nameRef({ kind, namespace, name }: KubeRef): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}
