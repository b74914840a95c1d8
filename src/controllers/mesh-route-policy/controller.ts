import type { Access } from '../../api/access.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { isEqual } from '../../api/json.ts';
import type { Controller } from '../../runtime/controller.ts';
import { conditionChanges, conditionEvent } from '../../store/condition-events.ts';
import type { ObjectEvent, RecordEvents, WriteResources } from '../../store/resources.ts';
import { gatherer } from './gather.ts';
import type { GatherDeps } from './gather.ts';
import { sameAncestor, statusOf } from './status.ts';

type MeshRoutePolicy = Kinds['MeshRoutePolicy'];

export type MeshRoutePolicyDeps = GatherDeps & {
  readonly write: Pick<WriteResources, 'replaceStatus'>;
  readonly events: RecordEvents;
  /** The time of day. */
  readonly now: () => Date;
};

/** What the controller may do in a cluster, beside watching what it reads: write the status of MeshRoutePolicies. */
export const access: Access = {
  cluster: [
    { apiGroups: [GROUP], resources: ['meshroutepolicies'], verbs: ['get'] },
    { apiGroups: [GROUP], resources: ['meshroutepolicies/status'], verbs: ['patch'] },
  ],
  own: [],
};

/** Writes the status of each MeshRoutePolicy. Traffic follows the spec without it, by EDS. */
export function meshRoutePolicyController(deps: MeshRoutePolicyDeps): Controller<'MeshRoutePolicy'> {
  const { write, events, now } = deps;
  const gather = gatherer(deps);
  return {
    name: 'mesh-route-policy',
    kind: 'MeshRoutePolicy',
    reads: [],
    reconcile: async (ref, read) => {
      const object = read.get(ref);
      if (!object) return { requeue: 'on-change' };
      const status = statusOf(gather(object, read), now());
      if (isEqual(status, object.status)) return { requeue: 'on-change' };
      await write.replaceStatus(object, status);
      for (const event of eventsOf(object, status)) events.record(event);
      return { requeue: 'on-change' };
    },
  };
}

/** The Events of a change of status: a condition becomes False, or is no longer; several Gateways share one. */
function eventsOf(
  object: MeshRoutePolicy,
  { ancestors = [] }: NonNullable<MeshRoutePolicy['status']>,
): readonly ObjectEvent[] {
  const all = ancestors
    .flatMap(ancestor => conditionChanges(object.status?.ancestors?.find(sameAncestor(ancestor)), ancestor))
    .filter(({ before, now }) => now.status === 'False' || before?.status === 'False')
    .map(({ now }) => {
      const type = now.status === 'False' ? 'Warning' : 'Normal';
      return conditionEvent(object, now, { type, action: 'Reconcile' });
    });
  return all.filter((event, index) => all.findIndex(each => isEqual(each, event)) === index);
}
