import type { Kinds } from '../../../api/generated/types.ts';
import { isRecord } from '../../../api/json.ts';
import { RELAY, relayName } from '../../../api/names.ts';
import { parseTargets, TARGETS_KEY } from '../../../api/relay-targets.ts';
import { isRelayed } from '../../../api/objects/references.ts';
import { addressText } from '../../../api/socket-address.ts';
import { podsByTailnet } from '../pool/gather.ts';
import { udpEndpointsByTailnet } from '../../../store/indexes.ts';
import type { OwnNamespace } from '../../../store/own-namespace.ts';
import type { TrackedRead } from '../../../store/tracking.ts';
import { isAllowed } from '../../../traffic/backend-refs.ts';
import { oldestTailnet } from '../../../traffic/resolve-backend-ref.ts';
import type { TrafficResources } from '../../../traffic/traffic-resources.ts';
import type { WantedTarget } from './plan.ts';
import type { RelayPod } from './relay-status.ts';

type MeshTailnet = Kinds['MeshTailnet'];
type MeshEndpoints = Kinds['MeshEndpoints'];

export type GatherDeps = {
  readonly read: TrackedRead;
  readonly traffic: TrafficResources;
};

/** Everything that decides the relay ports of a tailnet. */
export type Input = {
  readonly wanted: readonly WantedTarget[];
  /** Whether there is a ConfigMap, or pods may wait for one: relays need it also where they have no target. */
  readonly needsConfigMap: boolean;
  /** The text of the targets in the ConfigMap. */
  readonly stored: string | undefined;
  /** The ready ones. */
  readonly pods: readonly RelayPod[];
};

/** Whether the operator runs relays for a MeshTailnet: it has a managed pool, is not being deleted, and its domain is its own. */
export function runsRelays(tailnet: MeshTailnet, traffic: TrafficResources): boolean {
  const { metadata, spec } = tailnet;
  if (spec.pool.mode !== 'Managed' || metadata.deletionTimestamp !== undefined) return false;
  return oldestTailnet(traffic.tailnets(spec.tailnet))?.metadata.name === metadata.name;
}

/** Reads the ConfigMap of a tailnet; objects and pods are known. */
export async function gather(
  tailnet: MeshTailnet,
  workloads: OwnNamespace,
  { read, traffic }: GatherDeps,
): Promise<Input> {
  const { name } = tailnet.metadata;
  const configMap = await workloads.get('ConfigMap', relayName(name));
  const data = isRecord(configMap?.['data']) ? configMap['data'] : {};
  const stored = typeof data[TARGETS_KEY] === 'string' ? data[TARGETS_KEY] : undefined;
  const users = read.exceptStatus.find(udpEndpointsByTailnet, tailnet.spec.tailnet);
  const withRelay = read.find(podsByTailnet, name).filter(hasRelay);
  return {
    wanted: users.filter(user => mayUse(user, tailnet, traffic)).flatMap(user => wantedBy(user, traffic)),
    needsConfigMap: configMap !== undefined || users.length > 0 || withRelay.length > 0,
    stored,
    pods: withRelay.flatMap(({ metadata, status }) => {
      const [address] = status.addresses;
      const isServing = status.isReady && metadata.deletionTimestamp === undefined && address !== undefined;
      return isServing ? [{ uid: metadata.uid ?? metadata.name, name: metadata.name, address }] : [];
    }),
  };
}

/** The targets in the text of a ConfigMap, by port. */
export function targetsIn(text: string): ReadonlyMap<number, string> {
  const targets = [...parseTargets(text)];
  return new Map(targets.map(([port, target]) => [port, addressText({ ...target, meshIP: target.address })]));
}

function hasRelay({ metadata }: { readonly metadata: MeshTailnet['metadata'] }): boolean {
  return metadata.labels?.[RELAY.label] === 'true';
}

function mayUse({ metadata }: MeshEndpoints, { spec }: MeshTailnet, traffic: TrafficResources): boolean {
  if (metadata.deletionTimestamp !== undefined) return false;
  return isAllowed(traffic, spec.allowedNamespaces, metadata.namespace ?? '');
}

/** Relays send no datagrams to an address that must get no traffic. */
function wantedBy({ metadata, spec }: MeshEndpoints, { guard }: TrafficResources): readonly WantedTarget[] {
  const { namespace = '', name, creationTimestamp: createdAt } = metadata;
  return (spec.endpoints ?? [])
    .filter(endpoint => isRelayed(endpoint) && guard.meshProblem(endpoint.meshIP) === undefined)
    .map(endpoint => ({ target: addressText(endpoint), createdAt, namespace, name }));
}
