import type { Access } from '../../api/access.ts';
import type { Clock } from '../../api/clock.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import type { Kinds, ServiceCleanup } from '../../api/generated/types.ts';
import { FORCE_CLEANUP } from '../../api/names.ts';
import type { ResourceKind } from '../../api/key.ts';
import { isEqual } from '../../api/json.ts';
import { HEALTH_WRITE_INTERVAL_MS } from '../../api/shares.ts';
import type { Controller } from '../../runtime/controller.ts';
import { conditionChanges, conditionEvent } from '../../store/condition-events.ts';
import { regardingOf } from '../../store/resources.ts';
import type { ObjectEvent, RecordEvents, WriteResources } from '../../store/resources.ts';
import { asksForCleanup, cleanupsBy, tailnetsFor } from './cleanup.ts';
import type { Cleanup, Sweep } from './cleanup.ts';
import { gatherer } from './gather.ts';
import type { GatherDeps } from './gather.ts';
import { statusOf, withCompleted } from './status.ts';

type MeshGateway = Kinds['MeshGateway'];

export type MeshGatewayDeps = GatherDeps & {
  readonly write: Pick<WriteResources, 'replaceStatus' | 'removeAnnotation'>;
  /** Undefined where there are no VIP services. */
  readonly sweep: Sweep | undefined;
  readonly events: RecordEvents;
  readonly clock: Pick<Clock, 'now'>;
  /** The time of day. */
  readonly now: () => Date;
};

/** The kinds that the controller reads itself. */
export const reads: readonly ResourceKind[] = [
  'Gateway',
  'MeshBinding',
  'MeshEndpoints',
  'MeshTailnet',
  'Namespace',
];

/** What the controller may do in a cluster, beside watching what it reads: write the status of MeshGateways, and remove an annotation. */
export const access: Access = {
  cluster: [
    { apiGroups: [GROUP], resources: ['meshgateways'], verbs: ['get', 'patch'] },
    { apiGroups: [GROUP], resources: ['meshgateways/status'], verbs: ['patch'] },
  ],
  own: [],
};

type Memory = { cleanup: Cleanup | undefined };

/**
 * Writes the status of each MeshGateway, at most once a second: it counts the endpoints of any number of MeshEndpoints. What it
 * decides reaches traffic by the MeshBindings of its Gateways.
 */
export function meshGatewayController(deps: MeshGatewayDeps): Controller<'MeshGateway', Memory> {
  const { write, events, clock, now, sweep } = deps;
  const gather = gatherer(deps);
  const cleanUp = sweep && cleanupsBy(sweep, { clock, now });
  return {
    name: 'mesh-gateway',
    kind: 'MeshGateway',
    reads,
    minIntervalMs: HEALTH_WRITE_INTERVAL_MS,
    memory: () => ({ cleanup: undefined }),
    reconcile: async (ref, read, { signal, memory }) => {
      const object = read.get(ref);
      if (!object) return { requeue: 'on-change' };
      const input = gather(object, read);
      const tailnets = asksForCleanup(object) ? tailnetsFor(ref.namespace, read) : undefined;
      const { cleanup: known } = memory;
      const cleanup = tailnets && (await cleanUp?.(object, { known, tailnets, signal }));
      Object.assign(memory, { cleanup });
      const status = statusOf(input, now(), cleanup?.result);
      if (!isEqual(status, object.status)) {
        await write.replaceStatus(object, status);
        for (const event of eventsOf(object, status)) events.record(event);
      }
      if (!cleanup) return { requeue: 'on-change' };
      if (!cleanup.isComplete) return { requeue: 'after', ms: Math.max(0, cleanup.nextAt - clock.now()) };
      events.record(cleanupEvent(object, cleanup.result));
      await write.removeAnnotation(object, FORCE_CLEANUP);
      Object.assign(memory, { cleanup: undefined });
      await write.replaceStatus(object, withCompleted(status));
      return { requeue: 'on-change' };
    },
  };
}

function cleanupEvent(object: MeshGateway, { message }: ServiceCleanup): ObjectEvent {
  const [reason, action] = ['ServicesCleanedUp', 'CleanUp'];
  return { regarding: regardingOf(object), type: 'Normal', reason, action, note: message };
}

/** The Events of a change of status, which is written: MeshEndpoints have those about their endpoints. */
function eventsOf(object: MeshGateway, status: NonNullable<MeshGateway['status']>): readonly ObjectEvent[] {
  return conditionChanges(object.status, status)
    .filter(({ now }) => now.type === 'Accepted')
    .filter(({ before, now }) => now.status === 'False' || before?.status === 'False')
    .map(({ now }) => {
      const type = now.status === 'False' ? 'Warning' : 'Normal';
      return conditionEvent(object, now, { type, action: 'Reconcile' });
    });
}
