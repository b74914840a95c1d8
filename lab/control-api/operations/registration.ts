import { removeDevice } from './devices.ts';
import { redeemableKey } from './keys.ts';
import { newAddresses, newDeviceIds } from '../state.ts';
import type { Device, State } from '../state.ts';

/** A device to make; what is not given is what a usual Linux device has. */
export type DeviceOptions = Partial<Device> & { readonly hostname: string };

/** Adds a device that did not join with a key of this API, such as a user's laptop. */
export function addDevice(state: State, options: DeviceOptions): Device {
  const { random, clock, domain } = state;
  const { hostname } = options;
  const device: Device = {
    ...newDeviceIds(state),
    name: `${hostname}.${domain}`,
    addresses: newAddresses(state, 'devices'),
    user: `user@${domain}`,
    tags: [],
    authorized: true,
    isExternal: false,
    isEphemeral: false,
    blocksIncomingConnections: false,
    keyExpiryDisabled: (options.tags ?? []).length > 0,
    os: 'linux',
    clientVersion: '1.102.5',
    createdMs: clock.now(),
    expiresMs: clock.now() + Number(state.settings['devicesKeyDurationDays']) * 24 * 3600 * 1000,
    lastSeenMs: undefined,
    machineKey: `mkey:${random.hex(64)}`,
    nodeKey: `nodekey:${random.hex(64)}`,
    advertisedRoutes: [],
    enabledRoutes: [],
    ...options,
  };
  state.devices.put(device.nodeId, device);
  return device;
}

/** A device joins with a key, as it would at the control server; a key that is not good fails with the reason. */
export function joinWithKey(state: State, secret: string, options: DeviceOptions): Device {
  const key = redeemableKey(state, secret);
  state.keys.put(key.id, { ...key, uses: key.uses + 1 });
  const { preauthorized, ephemeral, tags } = key.capabilities;
  return addDevice(state, {
    tags,
    keyExpiryDisabled: tags.length > 0,
    isEphemeral: ephemeral,
    authorized: preauthorized || state.settings['devicesApprovalOn'] !== true,
    keyId: key.id,
    ...options,
    name: `${freeLabel(state, options.hostname)}.${state.domain}`,
  });
}

/** Changes a device, such as that it disconnects (`lastSeenMs`) or that its node key expires (`expiresMs`). */
export function changeDevice(state: State, nodeId: string, changes: Partial<Device>): Device {
  const device = state.devices.current(nodeId);
  if (!device) throw new Error(`device ${nodeId} does not exist`);
  const changed = { ...device, ...changes };
  state.devices.put(nodeId, changed);
  return changed;
}

/** Removes ephemeral devices that have been disconnected for long enough; called before each request. */
export function removeEphemeral(state: State): void {
  const goneBeforeMs = state.clock.now() - state.behaviour.ephemeralTimeoutMs;
  for (const device of state.devices.all())
    if (device.isEphemeral && (device.lastSeenMs ?? Infinity) <= goneBeforeMs) removeDevice(state, device);
}

/** The host name, or one with a number behind it where another device has that. */
function freeLabel({ devices, domain }: State, hostname: string): string {
  const taken = new Set(devices.all().map(({ name }) => name));
  let label = hostname;
  for (let number = 1; taken.has(`${label}.${domain}`); number++) label = `${hostname}-${number}`;
  return label;
}
