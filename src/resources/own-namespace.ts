/** The data of a Secret or ConfigMap, as texts. */
export type OwnData = {
  /** Changes whenever the data does; undefined where the source keeps no versions. */
  readonly version: string | undefined;
  readonly data: Readonly<Record<string, string>>;
};

/** What is kept in the operator's own namespace, read when it is needed. All fail with ResourceError. */
export interface ReadOwnNamespace {
  /** Where it reads, for messages: namespace mesh-system. */
  readonly place: string;
  /** Undefined where it does not exist. */
  secret(name: string): Promise<OwnData | undefined>;
  /** Undefined where it does not exist. */
  configMap(name: string): Promise<OwnData | undefined>;
  /** A short-lived token of the operator's own ServiceAccount. */
  serviceAccountToken(audience: string): Promise<string>;
}
