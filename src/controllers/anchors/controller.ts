import type { Access } from '../../api/access.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import { refOf } from '../../api/key.ts';
import type { Ref, ResourceKind } from '../../api/key.ts';
import { ANCHOR, MANAGED_BY } from '../../api/names.ts';
import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import type { Controller } from '../../runtime/controller.ts';
import type { OwnNamespace } from '../../store/own-namespace.ts';
import type { ApplyObjects, OwnedResource, WriteResources } from '../../store/resources.ts';
import { gatherer } from './gather.ts';
import type { GatherDeps } from './gather.ts';
import { plan } from './plan.ts';
import type { Anchor } from './plan.ts';

export type AnchorsDeps = GatherDeps & {
  readonly ownNamespace: Pick<OwnNamespace, 'namespace'>;
  readonly write: ApplyObjects<OwnedResource> & Pick<WriteResources, 'remove'>;
};

/** The kinds that the controller reads itself. */
export const reads: readonly ResourceKind[] = ['Gateway', 'HTTPRoute'];

/** What the controller may do in a cluster, beside watching what it reads: write HTTPRoutes in its own namespace. */
export const access: Access = {
  cluster: [],
  own: [
    { apiGroups: [GATEWAY_GROUP], resources: ['httproutes'], verbs: ['get', 'create', 'patch', 'delete'] },
  ],
};

/** Between two runs: each write makes Envoy Gateway read all objects of the GatewayClass, and many routes may be new at once. */
export const PAUSE_MS = 1000;

/**
 * Keeps HTTPRoutes in the operator's namespace that name the MeshEndpoints of TLSRoutes, TCPRoutes and UDPRoutes. Envoy Gateway
 * reads a MeshEndpoints only where an HTTPRoute or GRPCRoute of the GatewayClass names it, and reports `ResolvedRefs=False` for
 * other routes until then.
 */
export function anchorsController(deps: AnchorsDeps): Controller<'Namespace'> {
  const { write } = deps;
  const { namespace } = deps.ownNamespace;
  const gather = gatherer(deps);
  const own: Ref<'Namespace'> = { kind: 'Namespace', namespace: '', name: namespace };
  return {
    name: 'anchors',
    kind: 'Namespace',
    reads,
    keys: () => [own],
    minIntervalMs: PAUSE_MS,
    reconcile: async ({ name }, read) => {
      if (name !== namespace) return { requeue: 'on-change' };
      const { anchors, remove } = plan(gather(namespace, read));
      // One that has not changed since it was written is not sent.
      for (const anchor of anchors) await write.apply(httpRouteOf(anchor, namespace));
      for (const each of remove) await write.remove({ kind: 'HTTPRoute', namespace, name: each });
      return { requeue: 'on-change' };
    },
  };
}

/** A route without traffic, even where a listener has the name in its parentRef: no weights, and no ports. */
function httpRouteOf({ name, gateway, meshEndpoints }: Anchor, namespace: string): OwnedResource {
  const parent = refOf(gateway);
  const backendRefs = meshEndpoints.map(refOf).map(ref => ({ group: GROUP, ...ref, weight: 0 }));
  return {
    apiVersion: `${GATEWAY_GROUP}/v1`,
    kind: 'HTTPRoute',
    metadata: { name, namespace, labels: { ...MANAGED_BY, [ANCHOR.label]: 'true' } },
    spec: {
      parentRefs: [{ group: GATEWAY_GROUP, ...parent, sectionName: ANCHOR.sectionName }],
      rules: [{ backendRefs }],
    },
  };
}
