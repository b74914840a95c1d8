import type { Access } from '../../api/access.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { keyOf, refOf } from '../../api/key.ts';
import type { Ref } from '../../api/key.ts';
import { REPORT } from '../../api/names.ts';
import { refTo } from '../../api/objects/references.ts';
import type { HealthMonitor } from '../../health/health.ts';
import type { Controller } from '../../runtime/controller.ts';
import type { RunContext } from '../../runtime/runs.ts';
import { selectingByTailnet, udpEndpointsByTailnet, vipServicesByTailnet } from '../../store/indexes.ts';
import type { Index, ReadObjects, RecordEvents, WriteResources } from '../../store/resources.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';
import { devicesInUse, discoveryReader } from './discovery/discovery.ts';
import { eventsOf } from './events.ts';
import { findDevices, gatherer, ownTailnetOf } from './gather.ts';
import type { GatherDeps } from './gather.ts';
import { checkedEndpoints, plan } from './plan.ts';
import { pausedStatusOf, statusOf } from './status.ts';
import { unanchoredInMs } from './unanchored.ts';
import { unseenInMs } from '../../traffic/unseen.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];

/** What the controller works with. */
export type EndpointsDeps = GatherDeps & {
  readonly write: Pick<WriteResources, 'replaceStatus'>;
  readonly events: RecordEvents;
  readonly health: HealthMonitor;
  /** The control API of MeshTailnets that name none. */
  readonly controlURL: string | undefined;
};

/** What the controller may do in a cluster, beside watching what it reads: write the status of MeshEndpoints. */
export const access: Access = {
  cluster: [
    { apiGroups: [GROUP], resources: ['meshendpoints'], verbs: ['get'] },
    { apiGroups: [GROUP], resources: ['meshendpoints/status'], verbs: ['patch', REPORT] },
  ],
  own: [],
};

/** Whether the devices of an object were expected from a list. */
type Memory = { hasExpected: boolean };

/** Writes the status of each MeshEndpoints. */
export function endpointsController(deps: EndpointsDeps): Controller<'MeshEndpoints', Memory> {
  const { tracking, write, events, relayPorts, vipServices, health, inputs, tailnets, now, controlURL } =
    deps;
  const discovery = discoveryReader(tailnets);
  const gather = gatherer(deps);
  return {
    name: 'mesh-endpoints',
    kind: 'MeshEndpoints',
    reads: deps.values.reads,
    subscribe: enqueue => {
      const unsubscribers = [
        relayPorts?.subscribe(name => {
          for (const object of usersOf(name, udpEndpointsByTailnet, tracking.untracked))
            enqueue(refTo(object));
        }),
        vipServices?.subscribe(name => {
          for (const object of usersOf(name, vipServicesByTailnet, tracking.untracked))
            enqueue(refTo(object));
        }),
        tailnets.subscribe(name => {
          const isConcerned = discovery.noteChange(name);
          for (const object of usersOf(name, selectingByTailnet, tracking.untracked))
            if (isConcerned(object)) enqueue(refTo(object));
        }),
        tailnets.retain((name, devices) => {
          const tailnet = tracking.untracked.get({ kind: 'MeshTailnet', namespace: '', name });
          const objects = usersOf(name, selectingByTailnet, tracking.untracked);
          return tailnet ? devicesInUse(devices, tailnet, objects) : [];
        }),
        health.subscribe(key => enqueue(refOf(key) as Ref<'MeshEndpoints'>)),
        ...inputs.map(source => source.subscribe?.(key => enqueue(refOf(key) as Ref<'MeshEndpoints'>))),
      ];
      return () => {
        for (const unsubscribe of unsubscribers) unsubscribe?.();
      };
    },
    memory: () => ({ hasExpected: false }),
    reconcile: async (ref, read, run) => {
      const object = read.get(ref);
      if (!object || object.spec.paused) {
        health.remove(keyOf(ref));
        for (const source of inputs) source.forget?.(keyOf(ref));
      }
      if (!object) return { requeue: 'on-change' };
      if (object.spec.paused) {
        await writeStatus(object, pausedStatusOf(object, now()), run);
        return { requeue: 'on-change' };
      }
      const traffic = deps.values.resources(read);
      const input = await gather(declare(object, traffic, run.memory), read, { traffic, run });
      const planned = plan(input);
      health.set(keyOf(ref), checkedEndpoints(planned));
      const verdictOf = (endpoint: string) => health.verdict(keyOf(ref), endpoint);
      await writeStatus(object, statusOf({ ...input, planned, verdictOf, controlURL }), run);
      const waits = [unanchoredInMs(input.unanchored, input.now), unseenInMs(input.unseen, input.now)];
      const ms = Math.min(...waits.filter(each => each > 0));
      return Number.isFinite(ms) ? { requeue: 'after', ms } : { requeue: 'on-change' };
    },
  };

  /** Has everything that an object uses read from now on, which `gather` reads as far as it is known; returns what discovery finds. */
  function declare(object: MeshEndpoints, traffic: TrafficResources, memory: Memory) {
    const own = ownTailnetOf(object, traffic);
    discovery.expect(object, own, memory);
    const found = findDevices(object, own, discovery);
    for (const source of inputs) source.use?.(found.object);
    return found;
  }

  async function writeStatus(
    object: MeshEndpoints,
    status: NonNullable<MeshEndpoints['status']>,
    run: Pick<RunContext, 'wrote'>,
  ) {
    if (status === object.status) return;
    await write.replaceStatus(object, status);
    run.wrote(status);
    for (const event of eventsOf(object, status)) events.record(event);
  }
}

/** The MeshEndpoints of the domain of a MeshTailnet that an index has. */
function usersOf(name: string, index: Index<'MeshEndpoints'>, read: ReadObjects): readonly MeshEndpoints[] {
  const tailnet = read.get({ kind: 'MeshTailnet', namespace: '', name });
  return tailnet ? read.find(index, tailnet.spec.tailnet) : [];
}
