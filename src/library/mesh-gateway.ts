import type { MeshGatewaySpec } from '../api/generated/authored.ts';
import type { API_VERSION } from '../api/generated/kinds.ts';
import type { GatewayTarget } from '../api/generated/types.ts';
import { isRecord } from '../api/json.ts';
import { GATEWAY_GROUP } from '../api/objects/gateway-api.ts';
import { asList, objectOf } from './build.ts';
import type { Metadata, OneOrMore } from './route.ts';

/** The props of a MeshGateway: its metadata, and the fields of its spec. */
export type MeshGatewayProps = Omit<MeshGatewaySpec, 'targetRefs'> & {
  readonly metadata: Metadata;
  /** The Gateways, in the namespace of this object; a string is the name of one. */
  readonly targetRefs: OneOrMore<string | GatewayTarget>;
};

/** A MeshGateway as in YAML. */
export type AuthoredMeshGateway = {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: 'MeshGateway';
  readonly metadata: Metadata;
  readonly spec: MeshGatewaySpec;
};

/**
 * A MeshGateway as in YAML, deeply frozen. Throws an AuthoringError with the faults that the API server and
 * `mesh-gateway check` would report.
 */
export function meshGateway(props: MeshGatewayProps): AuthoredMeshGateway {
  const given: unknown = props;
  const { metadata, targetRefs, ...spec } = isRecord(given) ? given : {};
  const targets = asList(targetRefs)?.map(target =>
    typeof target === 'string' ? { group: GATEWAY_GROUP, kind: 'Gateway', name: target } : target,
  );
  return objectOf('MeshGateway', metadata, { targetRefs: targets, ...spec }) as AuthoredMeshGateway;
}
