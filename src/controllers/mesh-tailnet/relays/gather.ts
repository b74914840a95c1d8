import type { Clock } from '../../../api/clock.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { endpointsOf } from '../../../api/objects/endpoints.ts';
import { isRecord } from '../../../api/json.ts';
import type { Ref } from '../../../api/key.ts';
import { RELAY, relayName } from '../../../api/names.ts';
import { TARGETS_KEY } from '../../../api/relay-targets.ts';
import { parseServices, SERVICES_KEY } from '../../../api/served-services.ts';
import type { ServedService } from '../../../api/served-services.ts';
import { isRelayed } from '../../../api/objects/references.ts';
import { addressText } from '../../../api/socket-address.ts';
import { podsByTailnet } from '../pool/gather.ts';
import { udpEndpointsByTailnet, vipServicesByTailnet } from '../../../store/indexes.ts';
import type { OwnNamespace } from '../../../store/own-namespace.ts';
import type { TrackedRead } from '../../../store/tracking.ts';
import type { TrafficValues } from '../../../store/traffic/values.ts';
import { oldestOf } from '../../../api/objects/oldest.ts';
import { isAllowed } from '../../../traffic/permissions.ts';
import type { TrafficResources } from '../../../traffic/traffic-resources.ts';
import type { WantedTarget } from './plan.ts';
import type { RelayPod } from './relay-status.ts';
import { servedServicesOf } from './served.ts';

type MeshTailnet = Kinds['MeshTailnet'];
type MeshEndpoints = Kinds['MeshEndpoints'];

/** Everything that decides the relay ports of a tailnet. */
export type Input = {
  readonly tailnet: MeshTailnet;
  readonly wanted: readonly WantedTarget[];
  /** Whether there is a ConfigMap, or pods may wait for one: relays need it also where they have no target. */
  readonly needsConfigMap: boolean;
  /** The text of the targets in the ConfigMap. */
  readonly stored: string | undefined;
  /** The VIP services that mesh pods should serve. */
  readonly services: readonly ServedService[];
  /** Their text in the ConfigMap. */
  readonly storedServices: string | undefined;
  /** The ready ones. */
  readonly pods: readonly RelayPod[];
  readonly now: number;
};

export type GatherDeps = {
  readonly ownNamespace: Pick<OwnNamespace, 'get'>;
  readonly values: Pick<TrafficValues, 'settingsResources'>;
  readonly clock: Pick<Clock, 'now'>;
};

/** Reads a tailnet with the ConfigMap of its relays; undefined where the operator runs no relays for it. */
export async function gather(
  ref: Ref<'MeshTailnet'>,
  read: TrackedRead,
  { ownNamespace, values, clock }: GatherDeps,
): Promise<Input | undefined> {
  const tailnet = read.get(ref);
  const traffic = values.settingsResources(read);
  if (!tailnet || !runsRelays(tailnet, traffic)) return undefined;
  const configMap = await ownNamespace.get('ConfigMap', relayName(ref.name));
  const data = isRecord(configMap?.['data']) ? configMap['data'] : {};
  const storedServices = typeof data[SERVICES_KEY] === 'string' ? data[SERVICES_KEY] : undefined;
  const users = read.exceptStatus.find(udpEndpointsByTailnet, tailnet.spec.tailnet);
  const offering = read.find(vipServicesByTailnet, tailnet.spec.tailnet);
  const withRelay = read.find(podsByTailnet, ref.name).filter(hasRelay);
  return {
    tailnet,
    wanted: users.filter(user => mayUse(user, tailnet, traffic)).flatMap(user => wantedBy(user, traffic)),
    needsConfigMap: configMap !== undefined || [users, offering, withRelay].some(({ length }) => length > 0),
    services: servedServicesOf(
      offering.filter(each => mayUse(each, tailnet, traffic)),
      { guard: traffic.guard, before: new Set(parseServices(storedServices ?? '').map(({ name }) => name)) },
    ),
    storedServices,
    stored: typeof data[TARGETS_KEY] === 'string' ? data[TARGETS_KEY] : undefined,
    pods: withRelay.flatMap(({ metadata, status }) => {
      const [address] = status.addresses;
      const isServing = status.isReady && metadata.deletionTimestamp === undefined && address !== undefined;
      return isServing ? [{ uid: metadata.uid ?? metadata.name, name: metadata.name, address }] : [];
    }),
    now: clock.now(),
  };
}

/** Whether a MeshTailnet has a managed pool, is not being deleted, and its domain is its own. */
function runsRelays({ metadata, spec }: MeshTailnet, traffic: TrafficResources): boolean {
  if (spec.pool.mode !== 'Managed' || metadata.deletionTimestamp !== undefined) return false;
  return oldestOf(traffic.tailnets(spec.tailnet))?.metadata.name === metadata.name;
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
