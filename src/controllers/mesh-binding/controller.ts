import type { Access } from '../../api/access.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import type { Kinds } from '../../api/generated/types.ts';
import type { Clock } from '../../api/clock.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import { keyOf, refOf, ROUTE_KINDS } from '../../api/key.ts';
import type { Key, Ref } from '../../api/key.ts';
import { gatewaysOf, refTo, tailnetsOf } from '../../api/objects/references.ts';
import type { ResourceOf } from '../../api/objects/resource.ts';
import { endpointsByTailnet, findWithCaRef, routesTo } from '../../store/indexes.ts';
import { byNamespace } from '../../store/resources.ts';
import type { ReadResources, WriteResources } from '../../store/resources.ts';
import type { Controller } from '../../runtime/controller.ts';
import { byKey, whenChanges, whenGenerationChanges } from '../../runtime/trigger.ts';
import type { Trigger } from '../../runtime/trigger.ts';
import { trafficAccess } from '../../traffic/access.ts';
import { plan } from './plan.ts';
import type { Action } from './plan.ts';

export type BindingDeps = {
  /** Of a store with the `sharedIndexes`. */
  readonly read: ReadResources;
  readonly write: Pick<WriteResources, 'apply' | 'remove'>;
  readonly clock: Pick<Clock, 'now'>;
  /** The revision of the mesh clusters of a Gateway; undefined where it has none. */
  readonly revisionOf: (gateway: Ref<'Gateway'>) => string | undefined;
};

/** What the controller may do in a cluster: read what decides traffic, and write MeshBindings. */
export const access: Access = {
  cluster: [
    ...trafficAccess,
    { apiGroups: [GROUP], resources: ['meshbindings'], verbs: ['get', 'create', 'patch', 'delete'] },
  ],
  own: [],
};

/** Keeps one MeshBinding for each Gateway with mesh routes, so that Envoy Gateway translates when their clusters change. */
export function bindingController(deps: BindingDeps): Controller<'Gateway'> {
  const planFor = planner(deps);
  return {
    name: 'mesh-binding',
    kind: 'Gateway',
    triggers,
    reconcile: async gateway => {
      const action = planFor(gateway);
      await perform(action, deps.write);
      // A write changes the MeshBinding, which triggers the next reconcile.
      return action.do === 'wait' ? { requeue: 'after', ms: action.ms } : { requeue: 'on-change' };
    },
  };
}

/** A MeshBinding as this process has observed it since a time. */
type Observed = {
  readonly binding: Kinds['MeshBinding'] | undefined;
  readonly isCurrent: boolean;
  readonly sinceMs: number;
};

/** Plans with the time since which a MeshBinding has been as it is. */
function planner({ read, clock, revisionOf }: BindingDeps): (gateway: Ref<'Gateway'>) => Action {
  const observed = new Map<Key, Observed>();
  const unchangedForMs = (key: Key, binding: Observed['binding'], isCurrent: boolean) => {
    const known = observed.get(key);
    if (known?.binding === binding && known?.isCurrent === isCurrent) return clock.now() - known.sinceMs;
    observed.set(key, { binding, isCurrent, sinceMs: clock.now() });
    return 0;
  };
  return gateway => {
    const revision = read.get(gateway) && revisionOf(gateway);
    const binding = read.get({ ...gateway, kind: 'MeshBinding' });
    const key = keyOf(gateway);
    if (revision === undefined) observed.delete(key);
    const isCurrent = binding?.spec.revision === revision;
    return plan({
      ...{ gateway, revision, binding },
      unchangedForMs: revision === undefined ? 0 : unchangedForMs(key, binding, isCurrent),
    });
  };
}

async function perform(action: Action, write: BindingDeps['write']): Promise<void> {
  switch (action.do) {
    case 'apply':
      return write.apply(action.object);
    case 'remove':
      return write.remove(action.ref);
    case 'wait':
    case 'nothing':
      return undefined;
  }
}

/** The Gateways of all routes that send traffic to a MeshEndpoints, which need not exist. */
function gatewaysUsing(endpoints: string, read: ReadResources): readonly Ref<'Gateway'>[] {
  return routesTo(endpoints as Key, read)
    .flatMap(route => gatewaysOf(route))
    .map(key => refOf(key) as Ref<'Gateway'>);
}

/** The Gateways that use any MeshEndpoints of a tailnet. */
function gatewaysOfTailnet(domain: string, read: ReadResources): readonly Ref<'Gateway'>[] {
  return gatewaysUsingAny(read.find(endpointsByTailnet, domain), read);
}

/** The Gateways that use any MeshEndpoints of a namespace. */
function gatewaysOfNamespace(namespace: string, read: ReadResources): readonly Ref<'Gateway'>[] {
  return gatewaysUsingAny(read.find(byNamespace('MeshEndpoints'), namespace), read);
}

function gatewaysUsingAny(
  objects: readonly ResourceOf<'MeshEndpoints'>[],
  read: ReadResources,
): readonly Ref<'Gateway'>[] {
  return objects.flatMap(object => gatewaysUsing(keyOf(refTo(object)), read));
}

/** Which Gateways a change concerns; a MeshBinding has the name of its Gateway. A revision depends on no status. */
const triggers: readonly Trigger<'Gateway'>[] = [
  ...ROUTE_KINDS.map(kind =>
    whenGenerationChanges(kind, (route: Route) => gatewaysOf(route), byKey<'Gateway'>),
  ),
  whenGenerationChanges('MeshEndpoints', object => [keyOf(refTo(object))], gatewaysUsing),
  whenGenerationChanges('MeshTailnet', tailnetsOf, gatewaysOfTailnet),
  whenChanges(
    'ConfigMap',
    ({ metadata }) => [metadata.name],
    (_, read) => gatewaysUsingAny(findWithCaRef(read), read),
  ),
  whenChanges('ReferenceGrant', ({ metadata }) => [metadata.namespace ?? ''], gatewaysOfNamespace),
  whenChanges('Namespace', ({ metadata }) => [metadata.name], gatewaysOfNamespace),
  whenChanges(
    'MeshBinding',
    ({ metadata }) => [keyOf(refTo({ kind: 'Gateway', metadata }))],
    byKey<'Gateway'>,
  ),
];
