import { GATEWAY_GROUP } from '../api/gateway-api.ts';
import type { BackendRef, ReferenceGrant } from '../api/gateway-api.ts';
import type { RouteKind } from '../api/key.ts';
import type { Declared } from './declared.ts';

/** Whether a route may refer to a backend: in its own namespace always, in others where one of their grants says so. */
export function isPermitted(
  declared: Declared,
  from: { readonly kind: RouteKind; readonly namespace: string },
  to: BackendRef,
): boolean {
  if (from.namespace === to.namespace) return true;
  return declared.grants(to.namespace).some(grant => grants(grant, from, to));
}

function grants(
  grant: ReferenceGrant,
  { kind, namespace }: { readonly kind: RouteKind; readonly namespace: string },
  backend: BackendRef,
): boolean {
  const isFrom = grant.from.some(
    from => from.group === GATEWAY_GROUP && from.kind === kind && from.namespace === namespace,
  );
  if (!isFrom) return false;
  return grant.to.some(
    to =>
      to.group === backend.group &&
      to.kind === backend.kind &&
      (to.name === undefined || to.name === '' || to.name === backend.name),
  );
}
