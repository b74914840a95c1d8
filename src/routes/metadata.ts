/** The metadata of an object that is written for GitOps. */
export type Metadata = {
  /** Unique among the objects of its kind in its namespace. */
  readonly name: string;
  /** Without it, the object goes where it is applied. */
  readonly namespace?: string;
  readonly labels?: { readonly [name: string]: string };
  readonly annotations?: { readonly [name: string]: string };
};
