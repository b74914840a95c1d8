import type { MeshTailnetSpec } from '../api/generated/authored.ts';
import type { API_VERSION } from '../api/generated/kinds.ts';
import { isRecord } from '../api/json.ts';
import { objectOf } from './build.ts';
import type { Metadata } from './route.ts';

/** The metadata of an object that is in no namespace. */
type ClusterMetadata = Omit<Metadata, 'namespace'> & { readonly namespace?: never };

/** The props of a MeshTailnet: its metadata, and the fields of its spec. */
export type MeshTailnetProps = { readonly metadata: ClusterMetadata } & MeshTailnetSpec;

/** A MeshTailnet as in YAML. */
export type AuthoredMeshTailnet = {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: 'MeshTailnet';
  readonly metadata: ClusterMetadata;
  readonly spec: MeshTailnetSpec;
};

/**
 * A MeshTailnet as in YAML, deeply frozen. Throws an AuthoringError with the faults that the API server and
 * `mesh-gateway check` would report.
 */
export function meshTailnet(props: MeshTailnetProps): AuthoredMeshTailnet {
  const given: unknown = props;
  const { metadata, ...spec } = isRecord(given) ? given : {};
  return objectOf('MeshTailnet', metadata, spec) as AuthoredMeshTailnet;
}
