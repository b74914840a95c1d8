import type { Clock } from '../../../api/clock.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { endpointsOf } from '../../../api/objects/endpoints.ts';
import { isRecord } from '../../../api/json.ts';
import type { Pod } from '../../../api/objects/pod.ts';
import type { Ref } from '../../../api/key.ts';
import { RELAY, relayName } from '../../../api/names.ts';
import { TARGETS_KEY } from '../../../api/relay-targets.ts';
import { formatServices, parseServices, SERVICES_KEY } from '../../../api/served-services.ts';
import { isRelayed } from '../../../api/objects/references.ts';
import { addressText } from '../../../api/socket-address.ts';
import type { Published } from '../../../runtime/published.ts';
import type { ServiceNames, ServicesOfTailnet } from '../../mesh-endpoints/vip-services.ts';
import { podsByTailnet } from '../pool/gather.ts';
import type { ReadCallers } from '../../../store/callers.ts';
import { udpEndpointsByTailnet, vipServicesByTailnet } from '../../../store/indexes.ts';
import type { OwnNamespace } from '../../../store/own-namespace.ts';
import type { DerivedValues, TrackedRead } from '../../../store/tracking.ts';
import type { TrafficValues } from '../../../store/traffic/values.ts';
import { oldestOf, refAt } from '../../../api/objects/oldest.ts';
import { isAllowed } from '../../../traffic/permissions.ts';
import type { TrafficResources } from '../../../traffic/traffic-resources.ts';
import type { WantedTarget } from './plan.ts';
import type { RelayPod } from './relay-status.ts';
import { frontTextsIn } from './front.ts';
import type { FrontInput, FrontTexts } from './front.ts';
import type { PolicyEnforcement } from '../enforcement/enforcement.ts';
import { servedServicesOf } from './served.ts';
import type { TailnetDestinations } from './destinations.ts';

type MeshTailnet = Kinds['MeshTailnet'];
type MeshEndpoints = Kinds['MeshEndpoints'];

/** Everything that decides the relay ports of a tailnet. */
export type Input = {
  readonly tailnet: MeshTailnet;
  readonly wanted: readonly WantedTarget[];
  /** The text of the targets in the ConfigMap. */
  readonly stored: string | undefined;
  /** The text of the VIP services that mesh pods should serve; that in the ConfigMap until it is known who has their names. */
  readonly services: string;
  /** The names that mesh pods should serve no more, with the departures of their holders. */
  readonly left: ReadonlyMap<string, string>;
  /** Their text in the ConfigMap. */
  readonly storedServices: string | undefined;
  /** The ready ones. */
  readonly pods: readonly RelayPod[];
  /** What decides the lists of the front of mesh pods. */
  readonly front: FrontInput;
  /** Those in the ConfigMap. */
  readonly storedFront: FrontTexts | undefined;
  /** All that may serve VIP services. */
  readonly serving: readonly RelayPod[];
  readonly now: number;
};

export type GatherDeps = {
  readonly ownNamespace: Pick<OwnNamespace, 'get'>;
  readonly values: Pick<TrafficValues, 'reads' | 'settingsResources'>;
  readonly vipServices: Pick<Published<ServicesOfTailnet>, 'of' | 'subscribe'>;
  /** Who uses the proxy of mesh pods. */
  readonly callers: ReadCallers;
  readonly enforcement: Pick<PolicyEnforcement, 'current' | 'subscribe'>;
  readonly clock: Pick<Clock, 'now'>;
};

/** Reads a tailnet with the ConfigMap of its relays; undefined where the operator runs no relays for it. */
export async function gather(
  ref: Ref<'MeshTailnet'>,
  read: TrackedRead,
  deps: GatherDeps & { readonly destinations: DerivedValues<TailnetDestinations> },
): Promise<Input | undefined> {
  const { ownNamespace, values, vipServices, clock } = deps;
  const tailnet = read.get(ref);
  const traffic = values.settingsResources(read);
  if (!tailnet || !runsRelays(tailnet, traffic)) return undefined;
  const configMap = await ownNamespace.get('ConfigMap', relayName(ref.name));
  const data = isRecord(configMap?.['data']) ? configMap['data'] : {};
  const storedServices = typeof data[SERVICES_KEY] === 'string' ? data[SERVICES_KEY] : undefined;
  const users = read.exceptStatus.find(udpEndpointsByTailnet, tailnet.spec.tailnet);
  const withRelay = read.find(podsByTailnet, ref.name).filter(hasRelay);
  const { names, states = new Map() } = vipServices.of(ref.name) ?? {};
  const before = new Map(parseServices(storedServices ?? '').map(service => [service.name, service]));
  return {
    tailnet,
    wanted: users.filter(user => mayUse(user, tailnet, traffic)).flatMap(user => wantedBy(user, traffic)),
    services: names
      ? formatServices(
          servedServicesOf(
            holdersOf(names, tailnet, read).filter(each => mayUse(each, tailnet, traffic)),
            { guard: traffic.guard, before, names, states },
          ),
        )
      : (storedServices ?? ''),
    left: names?.left ?? new Map(),
    storedServices,
    front: {
      tailnet,
      enforcement: deps.enforcement.current(),
      callers: deps.callers.current(),
      destinations: read.value(deps.destinations, tailnet.spec.tailnet),
    },
    storedFront: frontTextsIn(data),
    stored: typeof data[TARGETS_KEY] === 'string' ? data[TARGETS_KEY] : undefined,
    pods: withRelay.filter(isReady).flatMap(podOf),
    serving: withRelay.flatMap(podOf),
    now: clock.now(),
  };
}

/** Of thousands that list VIP services, those that have one: no other status decides what is served. */
function holdersOf({ holders }: ServiceNames, { spec }: MeshTailnet, read: TrackedRead) {
  return [...new Set(holders.values())].flatMap(place => {
    const object = read.get(refAt('MeshEndpoints', place));
    return object && vipServicesByTailnet.valuesOf(object).includes(spec.tailnet) ? [object] : [];
  });
}

/** Whether a MeshTailnet has a managed pool, is not being deleted, and its domain is its own. */
function runsRelays({ metadata, spec }: MeshTailnet, traffic: TrafficResources): boolean {
  if (spec.pool.mode !== 'Managed' || metadata.deletionTimestamp !== undefined) return false;
  return oldestOf(traffic.tailnets(spec.tailnet))?.metadata.name === metadata.name;
}

function isReady({ metadata, status }: Pod): boolean {
  return status.isReady && metadata.deletionTimestamp === undefined;
}

/** One without an address has not started. */
function podOf({ metadata, status }: Pod): readonly RelayPod[] {
  const [address] = status.addresses;
  return address === undefined ? [] : [{ uid: metadata.uid ?? metadata.name, name: metadata.name, address }];
}

function hasRelay({ metadata }: { readonly metadata: MeshTailnet['metadata'] }): boolean {
  return metadata.labels?.[RELAY.label] === 'true';
}

function mayUse({ metadata }: MeshEndpoints, { spec }: MeshTailnet, traffic: TrafficResources): boolean {
  if (metadata.deletionTimestamp !== undefined) return false;
  return isAllowed(traffic, spec.allowedNamespaces, metadata.namespace ?? '');
}

/** Relays send no datagrams to an address that must get no traffic. */
function wantedBy(object: MeshEndpoints, { guard }: TrafficResources): readonly WantedTarget[] {
  const { namespace = '', name, creationTimestamp: createdAt } = object.metadata;
  return endpointsOf(object)
    .filter(endpoint => isRelayed(endpoint) && guard.meshProblem(endpoint.meshIP) === undefined)
    .map(endpoint => ({ target: addressText(endpoint), createdAt, namespace, name }));
}
