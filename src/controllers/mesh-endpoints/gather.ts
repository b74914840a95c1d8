import { GROUP } from '../../api/generated/kinds.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { keyOf, refOf } from '../../api/key.ts';
import type { Key, Ref } from '../../api/key.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { refTo } from '../../api/objects/references.ts';
import { routesTo } from '../../store/indexes.ts';
import type { TrackedRead, Tracking } from '../../store/tracking.ts';
import type { TrafficValues } from '../../store/traffic/values.ts';
import { gatewaysOf } from '../../traffic/attachments.ts';
import type { DataPathMode } from '../../traffic/data-path.ts';
import { isAllowed, isPermitted } from '../../traffic/permissions.ts';
import { hasSettings } from '../../traffic/settings/revision.ts';
import type { Revision } from '../../traffic/settings/revision.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';
import type { ReadCaBundle } from '../../traffic/upstream-tls.ts';
import type { DeviceLists, Discovery, OwnTailnet, ReadDiscovery } from './discovery/discovery.ts';
import { withFound } from './discovery/found-endpoints.ts';
import { readInputs } from './inputs/inputs.ts';
import type { EndpointInputs, InputContext, InputSource } from './inputs/inputs.ts';
import type { NamedGateway } from './programmed.ts';
import type { PortsOfTailnet, RelayPorts } from './relay-ports.ts';
import type { ServicesOfTailnet, VipServices } from './vip-services.ts';
import { unusedReader } from './routes.ts';
import type { UnusedOf } from './routes.ts';
import { unanchoredOf } from './unanchored.ts';
import type { Unanchored } from './unanchored.ts';
import { unseenOf } from '../../traffic/unseen.ts';
import type { Unseen } from '../../traffic/unseen.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];

export type GatherDeps = {
  /** Of a store with the `trafficIndexes` and the `sharedIndexes`. */
  readonly tracking: Tracking;
  readonly values: Pick<
    TrafficValues,
    'reads' | 'resources' | 'unused' | 'overTlsBudget' | 'settingsOfRoutes' | 'translated'
  >;
  /** The data path of Gateways that have no other. */
  readonly dataPath: DataPathMode;
  /** Undefined where no relays run. */
  readonly relayPorts: RelayPorts | undefined;
  /** Undefined where none are registered. */
  readonly vipServices: VipServices | undefined;
  /** The lists of the devices of tailnets. */
  readonly tailnets: DeviceLists;
  /** Where what endpoints refer to outside of their object is read. */
  readonly inputs: readonly InputSource[];
  /** The namespace of the anchors; undefined where none are kept. */
  readonly anchorNamespace: string | undefined;
  /** The time of day. */
  readonly now: () => Date;
};

/** Everything that decides the checks and the status of a MeshEndpoints, but for the verdicts of checks. */
export type Input = {
  /** The object, with the endpoints that discovery finds now. */
  readonly object: MeshEndpoints;
  /** The object as it is stored. */
  readonly stored: MeshEndpoints;
  readonly discovery: Discovery;
  /** The MeshTailnet of its domain. */
  readonly tailnet: Kinds['MeshTailnet'] | undefined;
  /** Whether the MeshTailnet allows the namespace of the object. */
  readonly isAllowed: boolean;
  /** Undefined until this process has reconciled the relay ports of the tailnet. */
  readonly relayPorts: PortsOfTailnet | undefined;
  /** The registrations of VIP services; undefined until this process has reconciled those of the tailnet. */
  readonly services: ServicesOfTailnet | 'without a cluster' | undefined;
  /** What endpoints refer to outside of the object, by their names. */
  readonly inputs: ReadonlyMap<string, EndpointInputs>;
  readonly readCa: ReadCaBundle;
  /** The routes of all kinds that name it, and may refer to it. */
  readonly routes: readonly Route[];
  /** The Gateways of those routes. */
  readonly gateways: readonly NamedGateway[];
  readonly unusedOf: UnusedOf;
  readonly unanchored: Unanchored | undefined;
  readonly unseen: Unseen | undefined;
  readonly now: Date;
};

/** What discovery finds for an object, of which the rest is gathered. */
type Found = Pick<Input, 'object' | 'stored' | 'discovery' | 'tailnet' | 'isAllowed'>;

/** The MeshTailnet of an object, and whether it may use it. */
export function ownTailnetOf({ spec, metadata }: MeshEndpoints, traffic: TrafficResources): OwnTailnet {
  const tailnet = oldestOf(traffic.tailnets(spec.tailnet));
  const { namespace = '' } = metadata;
  return {
    tailnet,
    isAllowed: tailnet !== undefined && isAllowed(traffic, tailnet.spec.allowedNamespaces, namespace),
  };
}

/** Reads what discovery finds for an object. */
export function findDevices(
  stored: MeshEndpoints,
  own: OwnTailnet,
  discovery: Pick<ReadDiscovery, 'of'>,
): Found {
  const found = discovery.of(stored, own);
  return { ...own, stored, discovery: found, object: withFound(stored, found) };
}

/** Reads everything else that decides the status of an object, and its checks. */
export function gatherer(
  deps: Omit<GatherDeps, 'tailnets'>,
): (
  found: Found,
  read: TrackedRead,
  context: Pick<InputContext, 'run'> & { readonly traffic: TrafficResources },
) => Promise<Input> {
  const { values, relayPorts, vipServices, inputs, now, dataPath, anchorNamespace } = deps;
  const gatewaysNamed = gatewaysReader(deps);
  return async (found, read, { traffic, run }) => {
    const { object, tailnet } = found;
    const routes = routesTo(keyOf(refTo(object)), read.exceptStatus).filter(
      mayReferTo(refTo(object), traffic),
    );
    return {
      ...found,
      relayPorts: tailnet && relayPorts?.of(tailnet.metadata.name),
      services: vipServices ? tailnet && vipServices.of(tailnet.metadata.name) : 'without a cluster',
      inputs: await readInputs(inputs, object, { traffic, run }),
      readCa: pem => traffic.caBundle(pem),
      routes,
      gateways: gatewaysNamed(routes, traffic, read),
      unusedOf: unusedReader(read, { traffic, ...values }, dataPath),
      unanchored: unanchoredOf({ object, routes, read, traffic, anchorNamespace }),
      unseen: unseenOf(routes, traffic),
      now: now(),
    };
  };
}

/** Others count for nothing: whoever writes one, in any namespace, would else write into the status of the object. */
function mayReferTo(ref: Ref<'MeshEndpoints'>, traffic: TrafficResources): (route: Route) => boolean {
  const to = { group: GROUP, ...ref, weight: 1 };
  return ({ kind, metadata }) => isPermitted(traffic, { kind, namespace: metadata.namespace ?? '' }, to);
}

/** Reads the Gateways that routes name, each once, in an order that does not change. */
function gatewaysReader({ values }: Pick<GatherDeps, 'values'>) {
  const { translated, settingsOfRoutes } = values;
  const isTranslated = (gateway: Key, routes: readonly Key[], read: TrackedRead) => {
    const hasOwn = (revision: Revision | undefined, settingsOf: (route: Key) => string) =>
      revision !== undefined && routes.every(route => hasSettings(revision, route, settingsOf(route)));
    // What has been translated stays so whatever is next: an object that depended on it would run for each edit of the others.
    if (hasOwn(translated.read(gateway), route => settingsOfRoutes.read(route).text)) return true;
    return hasOwn(read.value(translated, gateway), route => read.value(settingsOfRoutes, route).text);
  };
  return (
    routes: readonly Route[],
    traffic: TrafficResources,
    read: TrackedRead,
  ): readonly NamedGateway[] => {
    const attached = new Map<Key, Key[]>();
    for (const route of routes)
      for (const gateway of gatewaysOf(route, traffic))
        attached.set(gateway, [...(attached.get(gateway) ?? []), keyOf(refTo(route))]);
    return [...attached].sort().map(([gateway, keys]) => ({
      gateway: refOf(gateway) as Ref<'Gateway'>,
      isTranslated: () => isTranslated(gateway, keys, read),
    }));
  };
}
