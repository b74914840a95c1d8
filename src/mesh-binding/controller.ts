import { keyOf, ROUTE_KINDS } from '../api/key.ts';
import type { Key, Ref, ResourceKind } from '../api/key.ts';
import { gatewaysOf, refTo, tailnetsOf } from '../api/references.ts';
import type { Kinds } from '../api/generated/types.ts';
import type { ResourceOf } from '../api/resource.ts';
import type { ReadResources, WriteResources } from '../resources/resources.ts';
import type { Clock } from '../api/clock.ts';
import type { Controller } from '../runtime/controller.ts';
import type { Outcome } from '../runtime/queue/queue.ts';
import { named, whenChanges } from '../runtime/trigger.ts';
import type { FindRefs, Trigger } from '../runtime/trigger.ts';
import { gatewaysOfNamespace, gatewaysOfTailnet, gatewaysUsing } from './indexes.ts';
import { plan } from './plan.ts';
import type { Action } from './plan.ts';

/** What the controller works with. */
export type BindingPorts = {
  /** Of a store that was made with the indexes of this folder. */
  readonly read: ReadResources;
  readonly write: Pick<WriteResources, 'apply' | 'remove'>;
  readonly clock: Pick<Clock, 'now'>;
  /** A hash of all that the clusters of a Gateway are made from; nothing where none of them is ours. */
  readonly revisionOf: (gateway: Ref<'Gateway'>) => string | undefined;
};

/** Keeps one MeshBinding for each Gateway that carries mesh routes, so that Envoy Gateway translates when it must. */
export function bindingController(ports: BindingPorts): Controller<'Gateway'> {
  const look = lookAt(ports);
  return {
    name: 'mesh-binding',
    kind: 'Gateway',
    triggers,
    reconcile: async gateway => {
      await perform(look(gateway), ports.write);
      return outcomeOf(look(gateway));
    },
  };
}

/** Decides about a Gateway, knowing since when each MeshBinding has been as it is. */
function lookAt({ read, clock, revisionOf }: BindingPorts): (gateway: Ref<'Gateway'>) => Action {
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

async function perform(action: Action, write: BindingPorts['write']): Promise<void> {
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

/** What is still to be done after something was done is done at another run. */
function outcomeOf(left: Action): Outcome {
  switch (left.do) {
    case 'wait':
      return { look: 'after', ms: left.ms };
    case 'apply':
    case 'remove':
      return { look: 'with-backoff' };
    case 'nothing':
      return { look: 'on-change' };
  }
}

/** A change of an object of that kind concerns the Gateways that its texts lead to. */
function whenGatewaysChange<Of extends ResourceKind>(
  kind: Of,
  textsOf: (object: ResourceOf<Of>) => readonly string[],
  refsOf: FindRefs<'Gateway'>,
): Trigger<'Gateway'> {
  return whenChanges(kind, textsOf, refsOf);
}

const triggers: readonly Trigger<'Gateway'>[] = [
  ...ROUTE_KINDS.map(kind => whenGatewaysChange(kind, route => gatewaysOf(route), named)),
  whenGatewaysChange('MeshEndpoints', endpointsKey, (key, read) => gatewaysUsing(key as Key, read)),
  whenGatewaysChange('MeshTailnet', tailnetsOf, gatewaysOfTailnet),
  whenGatewaysChange('ReferenceGrant', ({ metadata }) => [metadata.namespace ?? ''], gatewaysOfNamespace),
  whenGatewaysChange('Namespace', ({ metadata }) => [metadata.name], gatewaysOfNamespace),
  whenGatewaysChange('MeshBinding', ({ metadata }) => [gatewayKey(metadata)], named),
];

function endpointsKey(object: Kinds['MeshEndpoints']): readonly Key[] {
  return [keyOf(refTo(object))];
}

/** The Gateway that a MeshBinding is for has its name. */
function gatewayKey({ namespace = '', name }: Kinds['MeshBinding']['metadata']): Key {
  return keyOf({ kind: 'Gateway', namespace, name });
}
