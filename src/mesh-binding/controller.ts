import type { Route } from '../api/gateway-api.ts';
import type { Kinds } from '../api/generated/types.ts';
import type { Clock } from '../api/clock.ts';
import { keyOf, refOf, ROUTE_KINDS } from '../api/key.ts';
import type { Ref, RouteKind } from '../api/key.ts';
import { gatewaysOf, meshBackendsOf, refTo, tailnetsOf } from '../api/references.ts';
import type { ResourceOf } from '../api/resource.ts';
import { byNamespace } from '../resources/resources.ts';
import type { AnyIndex, Index, ReadResources, WriteResources } from '../resources/resources.ts';
import type { Controller } from '../runtime/controller.ts';
import { byKey, whenChanges } from '../runtime/trigger.ts';
import type { Trigger } from '../runtime/trigger.ts';
import { plan } from './plan.ts';
import type { Action } from './plan.ts';

export type BindingDeps = {
  /** Of a store with the indexes below. */
  readonly read: ReadResources;
  readonly write: Pick<WriteResources, 'apply' | 'remove'>;
  readonly clock: Pick<Clock, 'now'>;
  /** A hash of all that the clusters of a Gateway are made from; nothing where none of them is ours. */
  readonly revisionOf: (gateway: Ref<'Gateway'>) => string | undefined;
};

/** Keeps one MeshBinding for each Gateway that carries mesh routes, so that Envoy Gateway translates when it must. */
export function bindingController(deps: BindingDeps): Controller<'Gateway'> {
  const decide = decideBy(deps);
  return {
    name: 'mesh-binding',
    kind: 'Gateway',
    triggers,
    reconcile: async gateway => {
      const action = decide(gateway);
      await perform(action, deps.write);
      // What was written is a change of a MeshBinding, and triggers the next run.
      return action.do === 'wait' ? { requeue: 'after', ms: action.ms } : { requeue: 'on-change' };
    },
  };
}

/** Decides about a Gateway, knowing since when each MeshBinding has been as it is. */
function decideBy({ read, clock, revisionOf }: BindingDeps): (gateway: Ref<'Gateway'>) => Action {
  const seenMs = new WeakMap<Kinds['MeshBinding'], number>();
  const sameForMs = (binding: Kinds['MeshBinding']) => {
    const since = seenMs.get(binding) ?? clock.now();
    seenMs.set(binding, since);
    return clock.now() - since;
  };
  return gateway => {
    const binding = read.get({ ...gateway, kind: 'MeshBinding' });
    return plan({
      gateway,
      revision: read.get(gateway) && revisionOf(gateway),
      binding,
      sameForMs: binding ? sameForMs(binding) : 0,
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

function byBackend<K extends RouteKind>(kind: K): Index<K> {
  return { name: `binding: ${kind} by MeshEndpoints`, kind, valuesOf: route => meshBackendsOf(route) };
}

const endpointsByTailnet: Index<'MeshEndpoints'> = {
  name: 'binding: MeshEndpoints by tailnet',
  kind: 'MeshEndpoints',
  valuesOf: tailnetsOf,
};

/** The indexes that the store must have been made with. */
export const bindingIndexes: readonly AnyIndex[] = [
  endpointsByTailnet,
  ...ROUTE_KINDS.map(kind => byBackend(kind) as AnyIndex),
];

/** The Gateways of all routes that send traffic to a MeshEndpoints, which need not exist. */
function gatewaysUsing(endpoints: string, read: ReadResources): readonly Ref<'Gateway'>[] {
  return ROUTE_KINDS.flatMap((kind): readonly Route[] => read.find(byBackend(kind), endpoints))
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

/** Which Gateways a change concerns; a MeshBinding has the name of its Gateway. */
const triggers: readonly Trigger<'Gateway'>[] = [
  ...ROUTE_KINDS.map(kind => whenChanges(kind, (route: Route) => gatewaysOf(route), byKey<'Gateway'>)),
  whenChanges('MeshEndpoints', object => [keyOf(refTo(object))], gatewaysUsing),
  whenChanges('MeshTailnet', tailnetsOf, gatewaysOfTailnet),
  whenChanges('ReferenceGrant', ({ metadata }) => [metadata.namespace ?? ''], gatewaysOfNamespace),
  whenChanges('Namespace', ({ metadata }) => [metadata.name], gatewaysOfNamespace),
  whenChanges(
    'MeshBinding',
    ({ metadata }) => [keyOf(refTo({ kind: 'Gateway', metadata }))],
    byKey<'Gateway'>,
  ),
];
