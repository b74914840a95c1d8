import type { Access } from '../../api/access.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { keyOf, refOf } from '../../api/key.ts';
import type { Key, Ref, ResourceKind } from '../../api/key.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { gatewaysOf, refTo } from '../../api/objects/references.ts';
import { REPORT } from '../../api/names.ts';
import type { HealthMonitor } from '../../health/health.ts';
import type { Controller } from '../../runtime/controller.ts';
import { Derived } from '../../store/derived.ts';
import { routesTo, udpEndpointsByTailnet } from '../../store/indexes.ts';
import type { ReadObjects, RecordEvents, WriteResources } from '../../store/resources.ts';
import type { DerivedValues, TrackedRead, Tracking } from '../../store/tracking.ts';
import { bindingOf } from '../../store/traffic/resources.ts';
import type { TrafficValues } from '../../store/traffic/values.ts';
import { trafficKinds } from '../../traffic/access.ts';
import { isAllowed } from '../../traffic/backend-refs.ts';
import type { DataPathMode } from '../../traffic/data-path.ts';
import { oldestTailnet } from '../../traffic/resolve-backend-ref.ts';
import { checkedEndpoints, planEndpoints } from './entries.ts';
import { eventsOf } from './events.ts';
import { readInputs } from './inputs/inputs.ts';
import type { InputSource } from './inputs/inputs.ts';
import { hasReported } from './programmed.ts';
import type { NamedGateway } from './programmed.ts';
import type { RelayPorts } from './relay-ports.ts';
import { unusedReader } from './routes.ts';
import { pausedStatusOf, statusOf } from './status.ts';
import type { Input } from './status.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];

/** What the controller works with. */
export type EndpointsDeps = {
  /** Of a store with the `trafficIndexes` and the `sharedIndexes`. */
  readonly tracking: Tracking;
  readonly values: Pick<TrafficValues, 'resources' | 'unused' | 'overTlsBudget'> & {
    readonly revisions: DerivedValues<string | undefined>;
  };
  readonly write: Pick<WriteResources, 'replaceStatus'>;
  readonly events: RecordEvents;
  /** The data path of Gateways that have no other. */
  readonly dataPath: DataPathMode;
  /** Undefined where no relays run. */
  readonly relayPorts: RelayPorts | undefined;
  readonly health: HealthMonitor;
  /** Where what endpoints refer to outside of their object is read. */
  readonly inputs: readonly InputSource[];
  /** The time of day. */
  readonly now: () => Date;
};

/** What the controller may do in a cluster, beside watching what it reads: write the status of MeshEndpoints. */
export const access: Access = {
  cluster: [
    { apiGroups: [GROUP], resources: ['meshendpoints'], verbs: ['get'] },
    { apiGroups: [GROUP], resources: ['meshendpoints/status'], verbs: ['patch', REPORT] },
  ],
  own: [],
};

/** The kinds that the controller reads, beside those that traffic is derived from. */
export const reads: readonly ResourceKind[] = trafficKinds;

/** Writes the status of each MeshEndpoints. */
export function endpointsController(deps: EndpointsDeps): Controller<'MeshEndpoints'> {
  const { tracking, write, events, relayPorts, health, inputs, now } = deps;
  const gather = gatherer(deps);
  return {
    name: 'mesh-endpoints',
    kind: 'MeshEndpoints',
    reads,
    subscribe: enqueue => {
      const unsubscribers = [
        relayPorts?.subscribe(name => {
          for (const ref of usersOf(name, tracking.untracked)) enqueue(ref);
        }),
        health.subscribe(key => enqueue(refOf(key) as Ref<'MeshEndpoints'>)),
        ...inputs.map(source => source.subscribe?.(key => enqueue(refOf(key) as Ref<'MeshEndpoints'>))),
      ];
      return () => {
        for (const unsubscribe of unsubscribers) unsubscribe?.();
      };
    },
    reconcile: async (ref, read, { signal }) => {
      const object = read.get(ref);
      if (!object || object.spec.paused) {
        health.remove(keyOf(ref));
        for (const source of inputs) source.forget?.(keyOf(ref));
      }
      if (!object) return { requeue: 'on-change' };
      if (object.spec.paused) return await writeStatus(object, pausedStatusOf(object, now()));
      const input = await gather(object, read, signal);
      health.set(keyOf(ref), checkedEndpoints(input.planned));
      return await writeStatus(object, statusOf(input));
    },
  };

  async function writeStatus(object: MeshEndpoints, status: NonNullable<MeshEndpoints['status']>) {
    if (status !== object.status) {
      await write.replaceStatus(object, status);
      for (const event of eventsOf(object, status)) events.record(event);
    }
    return { requeue: 'on-change' } as const;
  }
}

/** Reads everything that decides the status of an object, and its checks. */
function gatherer(
  deps: EndpointsDeps,
): (object: MeshEndpoints, read: TrackedRead, signal: AbortSignal) => Promise<Input> {
  const { values, relayPorts, health, inputs, now, dataPath } = deps;
  const gatewaysNamed = gatewaysReader(deps);
  return async (object, read, signal) => {
    const traffic = values.resources(read);
    const key = keyOf(refTo(object));
    const tailnet = oldestTailnet(traffic.tailnets(object.spec.tailnet));
    const mayUse =
      tailnet !== undefined &&
      isAllowed(traffic, tailnet.spec.allowedNamespaces, object.metadata.namespace ?? '');
    const planned = planEndpoints({
      object,
      tailnet: mayUse ? tailnet : undefined,
      relayPorts: tailnet && relayPorts?.of(tailnet.metadata.name),
      inputs: await readInputs(inputs, object, { traffic, signal }),
      readCa: pem => traffic.caBundle(pem),
    });
    const routes = routesTo(key, read.exceptStatus);
    return {
      object,
      tailnet,
      isAllowed: mayUse,
      planned,
      verdictOf: endpoint => health.verdict(key, endpoint),
      routes,
      gateways: gatewaysNamed(routes, read),
      unusedOf: unusedReader(read, values, dataPath),
      now: now(),
    };
  };
}

/** Reads the Gateways that routes name, each once, in an order that does not change. */
function gatewaysReader({ tracking, values }: EndpointsDeps) {
  const existing = new Derived(tracking, (key, read) => read.value(values.revisions, key) !== undefined);
  const translated = new Derived(tracking, (key, read) => {
    const gateway = refOf(key as Key) as Ref<'Gateway'>;
    const revision = read.value(values.revisions, key);
    return hasReported({ gateway, revision, binding: bindingOf(gateway, read) });
  });
  return (routes: readonly Route[], read: TrackedRead): readonly NamedGateway[] =>
    [...new Set(routes.flatMap(gatewaysOf))].sort().map(key => ({
      gateway: refOf(key) as Ref<'Gateway'>,
      exists: read.value(existing, key),
      isTranslated: () => read.value(translated, key),
    }));
}

/** The MeshEndpoints of the domain of a MeshTailnet that have UDP endpoints: others have no relay ports. */
function usersOf(name: string, read: ReadObjects): readonly Ref<'MeshEndpoints'>[] {
  const tailnet = read.get({ kind: 'MeshTailnet', namespace: '', name });
  return tailnet ? read.find(udpEndpointsByTailnet, tailnet.spec.tailnet).map(refTo) : [];
}
