import {
  addJoinKey,
  changeNode,
  createService,
  forgetNode,
  listJoinKeys,
  listNodes,
  listServices,
  removeNode,
  removeService,
  revokeJoinKey,
  setTags,
} from '../tailnet/tailnet.ts';
import type { JoinKeyState, TailnetNode, TailnetService } from '../tailnet/tailnet.ts';
import type { TailnetBehind } from './control-api.ts';
import { removeDevice } from './operations/devices.ts';
import { addDevice, changeDevice } from './operations/registration.ts';
import { advertise, withdraw } from './operations/services.ts';
import type { Device, Key, State } from './state.ts';

/** The test control server has its own names and addresses and no routes, and it approves at its admin endpoint only. */
const UNSUPPORTED = ['device.authorize', 'device.name', 'device.key', 'device.ip', 'device.routes.set'];

/**
 * The tailnet of a lab or a cluster, by its admin endpoint: keys that the simulator mints are keys of its control
 * server, devices are its nodes, services that it creates are served there, and what is deleted is removed there. Approval of
 * services is simulated: others reach a service at a device that waits for it.
 */
export function tailnetBehind(admin: string): TailnetBehind {
  let last: Promise<unknown> = Promise.resolve();
  // One call after the other: a list from before a change must not be applied after it.
  const inOrder = <T>(call: () => Promise<T>): Promise<T> => {
    const result = last.then(call, call);
    last = result;
    return result;
  };
  return {
    mintKey: ({ capabilities: { reusable, ephemeral, tags }, expirySeconds }, dialect) =>
      inOrder(async () => {
        const { id, key } = await addJoinKey(admin, { reusable, ephemeral, tags, expirySeconds, dialect });
        return { id, secret: key };
      }),
    revokeKey: id => inOrder(() => revokeJoinKey(admin, id)),
    remove: (nodeId, dialect) =>
      inOrder(() => (dialect === 'headscale' ? forgetNode(admin, nodeId) : removeNode(admin, nodeId))),
    expire: nodeId => inOrder(() => changeNode(admin, nodeId, 'expire')),
    setTags: (nodeId, tags) => inOrder(() => setTags(admin, nodeId, tags)),
    createService: name =>
      inOrder(async () => {
        const [ipv4 = '', ipv6 = ''] = (await createService(admin, name)).addresses;
        return [ipv4, ipv6];
      }),
    removeService: name => inOrder(() => removeService(admin, name)),
    refresh: state =>
      inOrder(async () => {
        const [nodes, keys, services] = await Promise.all([
          listNodes(admin),
          listJoinKeys(admin),
          listServices(admin),
        ]);
        refreshDevices(state, nodes);
        refreshKeys(state, keys);
        refreshHosts(state, services);
      }),
    unsupported: UNSUPPORTED,
  };
}

/** A node that has not changed is not written again, so that it stays visible to reads that see the past. */
function refreshDevices(state: State, nodes: readonly TailnetNode[]): void {
  for (const node of nodes) {
    const current = state.devices.current(node.id);
    const fields = fieldsOf(state, node, current);
    // On headscale both IDs of a device are the same.
    const ids = { nodeId: node.id, ...(state.dialect === 'headscale' ? { id: node.id } : {}) };
    if (!current) addDevice(state, { ...fields, ...ids });
    else if (JSON.stringify({ ...current, ...fields }) !== JSON.stringify(current))
      changeDevice(state, node.id, fields);
  }
  const ids = new Set(nodes.map(({ id }) => id));
  for (const device of state.devices.all()) if (!ids.has(device.nodeId)) removeDevice(state, device);
}

function fieldsOf(
  state: State,
  node: TailnetNode,
  current: Device | undefined,
): Partial<Device> & Pick<Device, 'hostname'> {
  const isOurs = state.keys.current(node.joinKeyId) !== undefined;
  return {
    hostname: node.hostname,
    name: node.fqdn,
    addresses: node.addresses,
    tags: node.tags,
    // The control server takes the approval from a device whose key has expired; the vendor's API does not.
    authorized: node.authorized || node.expired,
    isEphemeral: node.ephemeral,
    keyExpiryDisabled: !node.expired,
    expiresMs: node.expired ? (current?.expiresMs ?? state.clock.now()) : undefined,
    createdMs: Date.parse(node.joinedAt),
    lastSeenMs: node.online ? undefined : Date.parse(node.lastSeen),
    ...(isOurs ? { keyId: node.joinKeyId } : {}),
  };
}

/** Uses, revocations and deletions at the control server; keys of others stay unknown. */
function refreshKeys(state: State, keys: readonly JoinKeyState[]): void {
  const ids = new Set(keys.map(({ id }) => id));
  for (const { id, keyType } of state.keys.all())
    if (keyType === 'auth' && !ids.has(id)) state.keys.delete(id);
  for (const { id, uses, state: is } of keys) {
    const key: Key | undefined = state.keys.current(id);
    if (key?.keyType !== 'auth') continue;
    const isRevoked = is === 'revoked' && key.revokedMs === undefined;
    if (key.uses === uses && !isRevoked) continue;
    state.keys.put(id, { ...key, uses, ...(isRevoked ? { revokedMs: state.clock.now() } : {}) });
  }
}

/** The devices that advertise a service, which must have tags; one that is advertised again waits for approval again. */
function refreshHosts(state: State, services: readonly TailnetService[]): void {
  for (const { name, hosts } of services) {
    if (!state.services.current(name)) continue;
    const known = state.hosts.all().filter(({ service }) => service === name);
    const active = hosts.filter(
      host => host.active && (state.devices.current(host.id)?.tags.length ?? 0) > 0,
    );
    for (const { nodeId } of known)
      if (!active.some(({ id }) => id === nodeId)) withdraw(state, name, nodeId);
    for (const { id } of active) if (!known.some(({ nodeId }) => nodeId === id)) advertise(state, name, id);
  }
}
