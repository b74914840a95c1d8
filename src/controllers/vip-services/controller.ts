import type { Access } from '../../api/access.ts';
import type { Clock } from '../../api/clock.ts';
import { findCondition } from '../../api/conditions.ts';
import { durationMs } from '../../api/duration.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { SKIP_CLEANUP } from '../../api/names.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import type { ResourceKind } from '../../api/key.ts';
import { ControlError } from '../../control/control.ts';
import type { ControlApi, Tailnets, VipService } from '../../control/control.ts';
import type { Controller } from '../../runtime/controller.ts';
import type { Outcome } from '../../runtime/queue/queue.ts';
import type { WriteResources } from '../../store/resources.ts';
import type { TrackedRead } from '../../store/tracking.ts';
import type { Recorder } from '../../telemetry/metric-recorder.ts';
import type { vipServiceMetrics } from '../../telemetry/metrics.ts';
import { tailnetsByDomain } from '../../store/traffic/resources.ts';
import type { ServicesOfTailnet, VipServiceState } from '../mesh-endpoints/vip-services.ts';
import { coordinate, NOTHING_KNOWN } from './coordination.ts';
import type { Memory } from './coordination.ts';
import { claimsOf } from './gather.ts';
import type { Claims } from './gather.ts';
import type { Published } from '../../runtime/published.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** What the controller works with. */
export type VipServicesDeps = {
  readonly tailnets: Pick<Tailnets, 'api' | 'lastView' | 'subscribe'>;
  readonly vipServices: Published<ServicesOfTailnet>;
  readonly write: Pick<WriteResources, 'addFinalizer' | 'removeFinalizer'>;
  /** The id of this installation; undefined where it has none. */
  readonly installation: string | undefined;
  readonly clock: Pick<Clock, 'now'>;
  /** The time of day. */
  readonly now: () => Date;
  readonly random: () => number;
  readonly record: Pick<Recorder<typeof vipServiceMetrics>, 'registrations'>;
};

/** Held by a MeshTailnet while services of this installation may exist in its tailnet. */
export const FINALIZER = `${GROUP}/vip-services`;

/** The kinds that the controller reads. */
export const reads: readonly ResourceKind[] = ['MeshTailnet', 'MeshEndpoints', 'Namespace'];

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
  const { tailnets, vipServices, write } = deps;
  const memories = new Map<string, Memory>();
  return {
    name: 'vip-services',
    kind: 'MeshTailnet',
    reads,
    subscribe: enqueue => tailnets.subscribe(name => enqueue({ kind: 'MeshTailnet', namespace: '', name })),
    reconcile: async (ref, read, { signal }): Promise<Outcome> => {
      const { name } = ref;
      const tailnet = read.get(ref);
      if (!tailnet || isSuperseded(tailnet, read)) {
        memories.delete(name);
        vipServices.publish(name, undefined);
        return ON_CHANGE;
      }
      if (skipsCleanup(tailnet)) {
        await write.removeFinalizer(tailnet, FINALIZER);
        return ON_CHANGE;
      }
      const claims = claimsOf(tailnet, read);
      if (claims.claims.size === 0 && !hasFinalizer(tailnet)) {
        memories.delete(name);
        vipServices.publish(name, servicesWith(claims, new Map()));
        return ON_CHANGE;
      }
      const before = memories.get(name) ?? NOTHING_KNOWN;
      const connection = await connectionOf(tailnet, deps);
      if (connection.is === 'unusable') {
        vipServices.publish(name, {
          states: NO_STATES,
          ...vipServices.of(name),
          problem: connection.problem,
        });
        return { requeue: 'after', ms: intervalMsOf(tailnet) };
      }
      if (connection.is === 'without-services') {
        vipServices.publish(name, servicesWith(claims, new Map(), NOT_SUPPORTED));
        await write.removeFinalizer(tailnet, FINALIZER);
        return { requeue: 'after', ms: intervalMsOf(tailnet) };
      }
      if (claims.claims.size > 0 && !hasFinalizer(tailnet)) await write.addFinalizer(tailnet, FINALIZER);
      const { devices, isStale = true } = tailnets.lastView(name) ?? {};
      const { memory, states, nextMs } = await coordinate(
        { ...connection, claims: claims.claims, before, signal, devices, isStale, tags: tailnet.spec.tags },
        {
          ...deps,
          installation: connection.installation,
          count: result => deps.record.registrations({ tailnet: name, result }),
        },
      );
      memories.set(name, memory);
      vipServices.publish(name, servicesWith(claims, states));
      if (memory.listsWithout >= LISTS_WITHOUT) await write.removeFinalizer(tailnet, FINALIZER);
      return { requeue: 'after', ms: Math.min(nextMs, intervalMsOf(tailnet)) };
    },
  };
}

type Connection =
  | {
      readonly is: 'usable';
      readonly installation: string;
      readonly api: ControlApi;
      readonly services: readonly VipService[];
    }
  /** The control server has no VIP services. */
  | { readonly is: 'without-services' }
  | { readonly is: 'unusable'; readonly problem: NonNullable<ServicesOfTailnet['problem']> };

/** Lists the services of a tailnet, where its credentials are those of this tailnet. */
async function connectionOf(
  { metadata, status }: MeshTailnet,
  { tailnets, installation }: VipServicesDeps,
): Promise<Connection> {
  const { name } = metadata;
  const unusable = (reason: string, message: string): Connection => ({
    is: 'unusable',
    problem: { reason, message },
  });
  if (installation === undefined) {
    return unusable(
      'NotIdentified',
      'the operator cannot read Namespace kube-system, whose uid identifies the cluster',
    );
  }
  const [api, view] = [tailnets.api(name), tailnets.lastView(name)];
  if (view?.hasServices === false) return { is: 'without-services' };
  const authenticated = findCondition(status?.conditions, 'Authenticated');
  if (!api || authenticated?.status !== 'True') {
    return unusable('NotAuthenticated', `see the condition Authenticated of MeshTailnet ${name}`);
  }
  try {
    return { is: 'usable', installation, api, services: await api.services() };
  } catch (error) {
    if (!(error instanceof ControlError)) throw error;
    const { reason } = error;
    if (reason === 'NotSupported') return { is: 'without-services' };
    if (reason === 'ScopeMissing' || reason === 'NotFound') {
      const message = `the credentials of MeshTailnet ${name} need the scope services, or the tailnet has no VIP services`;
      return unusable('ScopeMissing', message);
    }
    // Without its words, which may differ each time.
    return unusable(
      reason,
      `the services of MeshTailnet ${name} could not be listed, so that they are as they were`,
    );
  }
}

const NOT_SUPPORTED: VipServiceState = {
  status: 'NotSupported',
  reason: 'NotSupported',
  message: 'the control server has no VIP services, as headscale has none',
};

function servicesWith(
  { listings }: Claims,
  states: ReadonlyMap<string, VipServiceState>,
  all?: VipServiceState,
): ServicesOfTailnet {
  const byObject = new Map<string, Map<string, VipServiceState>>();
  for (const { object, listed, name, problem } of listings) {
    const state = all ?? problem ?? states.get(name);
    const ofObject = byObject.get(object) ?? new Map<string, VipServiceState>();
    if (state) byObject.set(object, ofObject.set(listed, state));
  }
  return { states: byObject, problem: undefined };
}

function intervalMsOf({ spec }: MeshTailnet): number {
  return durationMs(spec.syncInterval) ?? 30_000;
}

function hasFinalizer({ metadata }: MeshTailnet): boolean {
  return metadata.finalizers?.includes(FINALIZER) ?? false;
}

function skipsCleanup(tailnet: MeshTailnet): boolean {
  const { annotations, deletionTimestamp } = tailnet.metadata;
  return annotations?.[SKIP_CLEANUP] === 'true' && deletionTimestamp !== undefined && hasFinalizer(tailnet);
}

/** An older MeshTailnet of the domain registers the services. */
function isSuperseded({ metadata, spec }: MeshTailnet, read: TrackedRead): boolean {
  const oldest = oldestOf(read.exceptStatus.find(tailnetsByDomain, spec.tailnet));
  return oldest !== undefined && oldest.metadata.name !== metadata.name;
}
