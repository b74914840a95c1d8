import type { Access } from '../../api/access.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { keyOf, refOf } from '../../api/key.ts';
import type { Ref } from '../../api/key.ts';
import { REPORT } from '../../api/names.ts';
import { datagramTailnetsOf, gatewaysOf, refTo } from '../../api/objects/references.ts';
import type { HealthMonitor } from '../../health/health.ts';
import { endpointsByTailnet, routesTo } from '../../store/indexes.ts';
import type { ReadResources, RecordEvents, WriteResources } from '../../store/resources.ts';
import type { Controller } from '../../runtime/controller.ts';
import { trafficAccess } from '../../traffic/access.ts';
import { isAllowed } from '../../traffic/backend-refs.ts';
import type { DataPathMode } from '../../traffic/data-path.ts';
import { oldestTailnet } from '../../traffic/resolve-backend-ref.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';
import { checkedEndpoints, planEndpoints } from './entries.ts';
import { eventsOf } from './events.ts';
import { readInputs } from './inputs/inputs.ts';
import type { InputSource } from './inputs/inputs.ts';
import type { GatewayBinding } from './programmed.ts';
import type { RelayPorts } from './relay-ports.ts';
import { Resolutions } from './routes.ts';
import { pausedStatusOf, statusOf } from './status.ts';
import type { Situation } from './status.ts';
import { triggersOf } from './triggers.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];

/** What the controller works with. */
export type EndpointsDeps = {
  /** Of a store with the indexes below and the `sharedIndexes`. */
  readonly read: ReadResources;
  readonly write: Pick<WriteResources, 'replaceStatus'>;
  readonly events: RecordEvents;
  readonly traffic: TrafficResources;
  /** The data path of Gateways that have no other. */
  readonly dataPath: DataPathMode;
  /** The revision that the MeshBinding of a Gateway must have; undefined where the Gateway has no mesh clusters. */
  readonly revisionOf: (gateway: Ref<'Gateway'>) => string | undefined;
  /** Undefined where no relays run. */
  readonly relayPorts: RelayPorts | undefined;
  readonly health: HealthMonitor;
  /** Where what endpoints refer to outside of their object is read. */
  readonly inputs: readonly InputSource[];
  /** The time of day. */
  readonly now: () => Date;
};

/** What the controller may do in a cluster: read what decides traffic, and write the status of MeshEndpoints. */
export const access: Access = {
  cluster: [
    ...trafficAccess,
    { apiGroups: [GROUP], resources: ['meshendpoints'], verbs: ['get'] },
    { apiGroups: [GROUP], resources: ['meshendpoints/status'], verbs: ['patch', REPORT] },
  ],
  own: [],
};

/** Writes the status of each MeshEndpoints. */
export function endpointsController(deps: EndpointsDeps): Controller<'MeshEndpoints'> {
  const { read, write, events, relayPorts, health, inputs, now } = deps;
  const resolutions = new Resolutions(deps);
  const gather = gatherer(deps, resolutions);
  return {
    name: 'mesh-endpoints',
    kind: 'MeshEndpoints',
    triggers: triggersOf({
      forgetAll: () => resolutions.forgetAll(),
      forgetBudgets: () => resolutions.forgetBudgets(),
    }),
    subscribe: enqueue => {
      const unsubscribers = [
        relayPorts?.subscribe(name => {
          for (const ref of usersOf(name, read)) enqueue(ref);
        }),
        health.subscribe(key => enqueue(refOf(key) as Ref<'MeshEndpoints'>)),
        ...inputs.map(source => source.subscribe?.(key => enqueue(refOf(key) as Ref<'MeshEndpoints'>))),
      ];
      return () => {
        for (const unsubscribe of unsubscribers) unsubscribe?.();
      };
    },
    reconcile: async (ref, { signal }) => {
      const object = read.get(ref);
      if (!object || object.spec.paused) {
        health.remove(keyOf(ref));
        for (const source of inputs) source.forget?.(keyOf(ref));
      }
      if (!object) return { requeue: 'on-change' };
      const status = object.spec.paused
        ? pausedStatusOf(object, now())
        : statusOf(await gather(object, signal));
      if (status === object.status) return { requeue: 'on-change' };
      await write.replaceStatus(object, status);
      for (const event of eventsOf(object, status)) events.record(event);
      return { requeue: 'on-change' };
    },
  };
}

/** Reads everything that decides the status of an object, and sets its checks. */
function gatherer(
  deps: EndpointsDeps,
  resolutions: Resolutions,
): (object: MeshEndpoints, signal: AbortSignal) => Promise<Situation> {
  const { read, traffic, relayPorts, health, inputs, now } = deps;
  return async (object, signal) => {
    const key = keyOf(refTo(object));
    const tailnet = oldestTailnet(traffic.tailnets(object.spec.tailnet));
    const mayUse =
      tailnet !== undefined &&
      isAllowed(traffic, tailnet.spec.allowedNamespaces, object.metadata.namespace ?? '');
    const planned = planEndpoints({
      object,
      tailnet: mayUse ? tailnet : undefined,
      relayPorts: tailnet && relayPorts?.of(tailnet.metadata.name),
      inputs: await readInputs(inputs, object, signal),
      readCa: pem => traffic.caBundle(pem),
    });
    health.set(key, checkedEndpoints(planned));
    const routes = routesTo(key, read);
    return {
      object,
      tailnet,
      isAllowed: mayUse,
      planned,
      verdictOf: endpoint => health.verdict(key, endpoint),
      routes,
      bindings: bindingsOf(routes, deps),
      unusedOf: (route, status) => resolutions.unusedOf(route, object, status),
      now: now(),
    };
  };
}

/** The Gateways that routes name, each once, in an order that does not change. */
function bindingsOf(
  routes: readonly Route[],
  { traffic, revisionOf }: Pick<EndpointsDeps, 'traffic' | 'revisionOf'>,
): readonly GatewayBinding[] {
  return [...new Set(routes.flatMap(gatewaysOf))].sort().map(key => {
    const gateway = refOf(key) as Ref<'Gateway'>;
    return { gateway, revision: revisionOf(gateway), binding: traffic.binding(gateway) };
  });
}

/** The MeshEndpoints of the domain of a MeshTailnet that have UDP endpoints: others have no relay ports. */
function usersOf(name: string, read: ReadResources): readonly Ref<'MeshEndpoints'>[] {
  const tailnet = read.get({ kind: 'MeshTailnet', namespace: '', name });
  if (!tailnet) return [];
  const users = read.find(endpointsByTailnet, tailnet.spec.tailnet);
  return users.filter(user => datagramTailnetsOf(user).length > 0).map(refTo);
}
