import { GATEWAY_GROUP } from '../api/objects/gateway-api.ts';
import type { BackendRef, Route } from '../api/objects/gateway-api.ts';
import type { AllowedNamespaces } from '../api/generated/types.ts';
import type { Ref, RouteKind } from '../api/key.ts';
import { selects } from '../api/objects/label-selector.ts';
import { isMeshBackend } from '../api/objects/references.ts';
import type { EnvoyClusterName } from './envoy-cluster-name.ts';
import type { TrafficResources } from './traffic-resources.ts';

/** A backendRef with its place in the route. */
export type RouteBackendRef = {
  readonly route: Route;
  readonly ref: BackendRef;
  /** Its index among all backendRefs that the cluster serves. */
  readonly index: number;
  /** Such as spec.rules[0].backendRefs[1]. */
  readonly path: string;
};

/** The backendRefs that a cluster serves; undefined where the route has no such rule or backend. */
export function backendRefsOf(
  route: Route,
  { rule, backend }: EnvoyClusterName,
): readonly RouteBackendRef[] | undefined {
  const refs = rule === 'only' ? allBackendRefs(route) : backendRefsInRule(route, rule, 0);
  if (backend === undefined) return refs;
  const one = refs?.[backend];
  return one && [one];
}

/** Envoy Gateway makes one cluster for all rules of a TLSRoute, TCPRoute or UDPRoute. */
function allBackendRefs(route: Route): readonly RouteBackendRef[] {
  const all: RouteBackendRef[] = [];
  for (const rule of route.rules.keys()) all.push(...(backendRefsInRule(route, rule, all.length) ?? []));
  return all;
}

function backendRefsInRule(
  route: Route,
  rule: number,
  first: number,
): readonly RouteBackendRef[] | undefined {
  return route.rules[rule]?.backendRefs.map((ref, index) => ({
    route,
    ref,
    index: first + index,
    path: `spec.rules[${rule}].backendRefs[${index}]`,
  }));
}

/** Whether a backendRef names a MeshEndpoints. */
export function isMeshEndpoints({ ref }: RouteBackendRef): boolean {
  return isMeshBackend(ref);
}

/** The MeshEndpoints that a backendRef names. */
export function meshEndpointsRefOf({
  ref: { namespace, name },
}: Pick<RouteBackendRef, 'ref'>): Ref<'MeshEndpoints'> {
  return { kind: 'MeshEndpoints', namespace, name };
}

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

type Labels = Readonly<Record<string, string>>;

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

/** The API server gives every namespace the label kubernetes.io/metadata.name, so it is known even before the namespace is. */
function labelsOf(resources: Pick<TrafficResources, 'namespace'>, namespace: string): Labels {
  return { ...resources.namespace(namespace)?.metadata.labels, 'kubernetes.io/metadata.name': namespace };
}
