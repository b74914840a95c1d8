import type { OwnData } from './own-namespace.ts';

/** Reads single objects of any namespace that MeshEndpoints refer to. All fail with ResourceError. */
export interface ReadReferenced {
  /** Undefined where it does not exist. */
  configMap(namespace: string, name: string): Promise<OwnData | undefined>;
  /** Undefined where it does not exist; fails with Refused where it may not be read. */
  secret(namespace: string, name: string): Promise<OwnData | undefined>;
}
