import type { Ref } from '../api/key.ts';
import { refTo, tailnetsOf } from '../api/references.ts';
import { endpointsByTailnet } from '../resources/indexes.ts';
import type { ReadResources, WriteResources } from '../resources/resources.ts';
import type { Controller } from '../runtime/controller.ts';
import { byIndex, whenChanges } from '../runtime/trigger.ts';
import { oldestTailnet } from '../traffic/resolve-backend-ref.ts';
import type { TrafficResources } from '../traffic/traffic-resources.ts';
import { statusOf } from './status.ts';
import type { RelayPorts } from './status.ts';

/** What the controller works with. */
export type EndpointsDeps = {
  /** Of a store with the `sharedIndexes`. */
  readonly read: ReadResources;
  readonly write: Pick<WriteResources, 'replaceStatus'>;
  readonly traffic: TrafficResources;
  /** Undefined where no relays run. */
  readonly relayPorts: RelayPorts | undefined;
};

/** Writes the status of each MeshEndpoints. */
export function endpointsController(deps: EndpointsDeps): Controller<'MeshEndpoints'> {
  const { read, write, traffic, relayPorts } = deps;
  return {
    name: 'mesh-endpoints',
    kind: 'MeshEndpoints',
    triggers: [whenChanges('MeshTailnet', tailnetsOf, byIndex(endpointsByTailnet))],
    subscribe: enqueue =>
      relayPorts?.subscribe(name => {
        for (const ref of usersOf(name, read)) enqueue(ref);
      }),
    reconcile: async ref => {
      const object = read.get(ref);
      if (!object || object.spec.paused) return { requeue: 'on-change' };
      const tailnet = oldestTailnet(traffic.tailnets(object.spec.tailnet));
      const ports = tailnet && relayPorts?.of(tailnet.metadata.name);
      const status = statusOf({ object, tailnet, relayPorts: ports });
      if (status && status !== object.status) await write.replaceStatus(object, status);
      return { requeue: 'on-change' };
    },
  };
}

/** The MeshEndpoints of the domain of a MeshTailnet. */
function usersOf(name: string, read: ReadResources): readonly Ref<'MeshEndpoints'>[] {
  const tailnet = read.get({ kind: 'MeshTailnet', namespace: '', name });
  return tailnet ? read.find(endpointsByTailnet, tailnet.spec.tailnet).map(refTo) : [];
}
