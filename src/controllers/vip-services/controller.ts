import type { Access } from '../../api/access.ts';
import type { Clock } from '../../api/clock.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import type { Kinds } from '../../api/generated/types.ts';
import type { ResourceKind } from '../../api/key.ts';
import type { Tailnets } from '../../control/control.ts';
import type { Controller } from '../../runtime/controller.ts';
import type { Outcome } from '../../runtime/queue/queue.ts';
import { isBeingDeleted } from '../../store/lifecycle.ts';
import type { WriteResources } from '../../store/resources.ts';
import type { Tracking } from '../../store/tracking.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Recorder } from '../../telemetry/metric-recorder.ts';
import type { vipServiceMetrics } from '../../telemetry/metrics.ts';
import type { TrafficValues } from '../../store/traffic/values.ts';
import { operatorTrafficKinds } from '../../traffic/access.ts';
import type { ServicesOfTailnet } from '../mesh-endpoints/vip-services.ts';
import { connectionOf } from './connection.ts';
import type { ConnectionDeps } from './connection.ts';
import { coordinate, NOTHING_KNOWN } from './coordination.ts';
import type { Memory } from './coordination.ts';
import { FINALIZER, hasFinalizer, skipsCleanup } from './finalizer.ts';
import {
  advertisedOf,
  claimsOf,
  heirOf,
  intervalMsOf,
  NOT_SUPPORTED,
  registrantsOf,
  servicesWith,
} from './gather.ts';
import type { Published } from '../../runtime/published.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** What the controller works with. */
export type VipServicesDeps = ConnectionDeps & {
  readonly tailnets: Pick<Tailnets, 'subscribe'>;
  readonly tracking: Pick<Tracking, 'untracked'>;
  readonly values: Pick<TrafficValues, 'serviceGateways'>;
  readonly vipServices: Published<ServicesOfTailnet>;
  readonly write: Pick<WriteResources, 'addFinalizer' | 'removeFinalizer'>;
  readonly clock: Pick<Clock, 'now'>;
  /** The time of day. */
  readonly now: () => Date;
  readonly random: () => number;
  readonly record: Pick<Recorder<typeof vipServiceMetrics>, 'registrations'>;
  readonly log: Log;
};

/** The kinds that the controller reads: what is listed, and by which routes a MeshGateway decides about it. */
export const reads: readonly ResourceKind[] = operatorTrafficKinds;

/** What the controller may do in a cluster, beside watching what it reads: hold finalizers of MeshTailnets. */
export const access: Access = {
  cluster: [{ apiGroups: [GROUP], resources: ['meshtailnets'], verbs: ['get', 'patch'] }],
  own: [],
};

const ON_CHANGE: Outcome = { requeue: 'on-change' };

const NO_STATES: ServicesOfTailnet['states'] = new Map();

/** A list may lack a service that was just created: this many in a row must have none before the finalizer is removed. */
const LISTS_WITHOUT = 3;

/** Registers the VIP services that the MeshEndpoints of each tailnet list, and removes those that none lists any more. */
export function vipServicesController(deps: VipServicesDeps): Controller<'MeshTailnet'> {
  const { tailnets, values, vipServices, write } = deps;
  const memories = new Map<string, Memory>();
  return {
    name: 'vip-services',
    kind: 'MeshTailnet',
    reads,
    subscribe: enqueue => tailnets.subscribe(name => enqueue({ kind: 'MeshTailnet', namespace: '', name })),
    reconcile: async (ref, read, { signal }): Promise<Outcome> => {
      const { name } = ref;
      const tailnet = read.get(ref);
      const heir = tailnet && heirOf(tailnet, read);
      if (!tailnet || heir) {
        memories.delete(name);
        vipServices.publish(name, undefined);
      }
      if (!tailnet) return ON_CHANGE;
      if (skipsCleanup(tailnet)) {
        await write.removeFinalizer(tailnet, FINALIZER);
        return ON_CHANGE;
      }
      if (heir) {
        await handOver(tailnet, heir);
        return ON_CHANGE;
      }
      const listed = claimsOf(tailnet, read, values);
      if (listed.claims.size === 0 && !hasFinalizer(tailnet)) {
        memories.delete(name);
        vipServices.publish(name, servicesWith(listed, new Map()));
        return ON_CHANGE;
      }
      const before = memories.get(name) ?? NOTHING_KNOWN;
      const connection = await connectionOf(tailnet, deps);
      if (connection.is === 'unusable') {
        const { problem } = connection;
        vipServices.publish(name, { states: NO_STATES, ...vipServices.of(name), problem });
        return { requeue: 'after', ms: intervalMsOf(tailnet) };
      }
      if (connection.is === 'without-services') {
        vipServices.publish(name, servicesWith(listed, new Map(), NOT_SUPPORTED));
        await write.removeFinalizer(tailnet, FINALIZER);
        return { requeue: 'after', ms: intervalMsOf(tailnet) };
      }
      const registrants = registrantsOf(connection.services, connection.installation);
      const claims = claimsOf(tailnet, read, values, registrants);
      if (claims.claims.size > 0 && !hasFinalizer(tailnet)) await write.addFinalizer(tailnet, FINALIZER);
      const { devices, isStale = true } = tailnets.lastView(name) ?? {};
      // A change of health alone needs no list of the services.
      const advertised = advertisedOf(claims, deps.tracking.untracked);
      const { tags } = tailnet.spec;
      const { memory, states, nextMs } = await coordinate(
        { ...connection, claims: claims.claims, advertised, before, signal, devices, isStale, tags },
        {
          ...deps,
          installation: connection.installation,
          log: deps.log.child({ tailnet: name }),
          count: result => deps.record.registrations({ tailnet: name, result }),
        },
      );
      memories.set(name, memory);
      vipServices.publish(name, servicesWith(claims, states));
      if (memory.listsWithout >= LISTS_WITHOUT) await write.removeFinalizer(tailnet, FINALIZER);
      return { requeue: 'after', ms: Math.min(nextMs, intervalMsOf(tailnet)) };
    },
  };

  /**
   * The heir keeps what this one has registered, or removes it. One that is being deleted takes no finalizer: this one has the
   * domain once that has ended.
   */
  async function handOver(tailnet: MeshTailnet, heir: MeshTailnet): Promise<void> {
    if (!hasFinalizer(tailnet) || isBeingDeleted(heir)) return;
    if (!hasFinalizer(heir)) await write.addFinalizer(heir, FINALIZER);
    await write.removeFinalizer(tailnet, FINALIZER);
  }
}
