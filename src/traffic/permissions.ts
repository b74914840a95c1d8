import type { AllowedNamespaces } from '../api/generated/types.ts';
import type { RouteKind } from '../api/key.ts';
import { GATEWAY_GROUP } from '../api/objects/gateway-api.ts';
import type { BackendRef } from '../api/objects/gateway-api.ts';
import { selects } from '../api/objects/label-selector.ts';
import type { Problem } from '../api/problem.ts';
import type { TrafficResources } from './traffic-resources.ts';

/** Whether a route may refer to a backend: in its own namespace always, in others if a ReferenceGrant permits it. */
export function isPermitted(
  resources: TrafficResources,
  { kind, namespace }: { readonly kind: RouteKind; readonly namespace: string },
  to: BackendRef,
): boolean {
  return isGranted(resources, { group: GATEWAY_GROUP, kind, namespace }, to);
}

type Identity = { readonly group: string; readonly kind: string; readonly namespace: string };

/** Whether objects of a kind may refer to an object: in their own namespace always, in others if a ReferenceGrant permits it. */
export function isGranted(
  resources: Pick<TrafficResources, 'grants'>,
  from: Identity,
  to: Identity & { readonly name: string },
): boolean {
  if (from.namespace === to.namespace) return true;
  return resources
    .grants(to.namespace)
    .some(
      grant =>
        grant.from.some(
          ({ group, kind, namespace }) =>
            group === from.group && kind === from.kind && namespace === from.namespace,
        ) &&
        grant.to.some(
          ({ group, kind, name = '' }) =>
            group === to.group && kind === to.kind && (name === '' || name === to.name),
        ),
    );
}

/** Whether the objects of a namespace are allowed, as by spec.allowedNamespaces of a MeshTailnet. */
export function isAllowed(
  resources: Pick<TrafficResources, 'namespace'>,
  { from, selector }: AllowedNamespaces,
  namespace: string,
): boolean {
  switch (from) {
    case 'All':
      return true;
    case 'Selector':
      return selector !== undefined && selects(selector, labelsOf(resources, namespace));
  }
}

/** Why an object of a namespace may not use a MeshTailnet. */
export function namespaceNotAllowed(tailnet: string, namespace: string): Problem<'NamespaceNotAllowed'> {
  return {
    reason: 'NamespaceNotAllowed',
    text: `spec.allowedNamespaces of MeshTailnet ${tailnet} does not select namespace ${namespace}`,
    fix: 'add the labels that it selects to the namespace, or change the selector',
  };
}

/** The API server gives every namespace the label kubernetes.io/metadata.name, so it is known even before the namespace is. */
function labelsOf(
  resources: Pick<TrafficResources, 'namespace'>,
  namespace: string,
): Readonly<Record<string, string>> {
  return { ...resources.namespace(namespace)?.metadata.labels, 'kubernetes.io/metadata.name': namespace };
}
