import { done, ok, Refusal } from '../answer.ts';
import type { Answer } from '../answer.ts';
import { bodyOf, field, texts } from '../call.ts';
import type { Call } from '../call.ts';
import type { Device, Dialect, State } from '../state.ts';
import { arePermittedTags, expectAssignableTag } from './tags.ts';
import { timestamp } from '../time.ts';

/** Calls to the real tailnet behind the simulator that change a device. */
export type DeviceEffects = {
  /** The vendor logs out a device that is deleted, headscale does not. */
  readonly remove: (nodeId: string, dialect: Dialect) => Promise<void>;
  readonly expire: (nodeId: string) => Promise<void>;
  readonly setTags: (nodeId: string, tags: readonly string[]) => Promise<void>;
};

/** `GET /tailnet/-/devices`: filters are exact, and all of them must match. */
export function listDevices(state: State, call: Call): Answer {
  const { fieldsOf, encode } = formOf(state, call);
  const filters = state.dialect === 'headscale' ? [] : [...call.query].filter(([name]) => name !== 'fields');
  const devices = visible(state).filter(device => filters.every(filter => matches(fieldsOf(device), filter)));
  return { status: 200, encodedJson: `{"devices":[${devices.map(encode).join(',')}]}` };
}

/** `GET /device/{id}`. */
export function getDevice(state: State, call: Call): Answer {
  const { id = '' } = call.params;
  const known = state.devices.all().find(device => isCalled(device, id));
  const device = known ? state.devices.read(known.nodeId) : undefined;
  if (!device || device.isExternal) throw notFound(state);
  return ok(formOf(state, call).fieldsOf(device));
}

/** `DELETE /device/{id}`. */
export async function deleteDevice(state: State, call: Call, { remove }: DeviceEffects): Promise<Answer> {
  const { id = '' } = call.params;
  const device = state.devices.all().find(one => isCalled(one, id));
  if (device?.isExternal) throw new Refusal(501, 'device is not owned by this tailnet');
  if (!device) {
    if (state.deletedDevices.has(id) && state.behaviour.deletedTwice === 500)
      throw new Refusal(500, 'internal server error');
    throw notFound(state);
  }
  await remove(device.nodeId, state.dialect);
  removeDevice(state, device);
  return done(state.dialect);
}

/** Takes a device out of the tailnet, and out of the services that it serves. */
export function removeDevice(state: State, { id, nodeId }: Device): void {
  state.devices.delete(nodeId);
  state.deletedDevices.add(id).add(nodeId);
  for (const host of state.hosts.all())
    if (host.nodeId === nodeId) state.hosts.delete(`${host.service} ${nodeId}`);
}

/** `POST /device/{id}/expire`. */
export async function expireDevice(state: State, call: Call, { expire }: DeviceEffects): Promise<Answer> {
  const device = owned(state, call);
  await expire(device.nodeId);
  return change(state, device, { expiresMs: state.clock.now(), keyExpiryDisabled: false });
}

/** `POST /device/{id}/authorized`. */
export function authorizeDevice(state: State, call: Call): Answer {
  const device = owned(state, call);
  const authorized = field(bodyOf(call), 'authorized', 'boolean');
  if (authorized === undefined) throw new Refusal(400, 'authorized must be a boolean');
  if (state.dialect === 'vendor') return change(state, device, { authorized });
  if (!authorized) throw new Refusal(400, 'nodes are authorized when they register');
  return done(state.dialect);
}

/** `POST /device/{id}/name`: the first label, or the whole name. */
export function nameDevice(state: State, call: Call): Answer {
  const device = owned(state, call);
  const label = (field(bodyOf(call), 'name', 'string') ?? '').split('.')[0]?.toLowerCase() ?? '';
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(label)) throw new Refusal(400, 'invalid name');
  const name = `${label}.${state.domain}`;
  if (state.devices.all().some(other => other.name === name && other !== device))
    throw new Refusal(409, `name "${label}" is in use`);
  return change(state, device, { name });
}

/** `POST /device/{id}/tags`. */
export async function tagDevice(state: State, call: Call, { setTags }: DeviceEffects): Promise<Answer> {
  const device = owned(state, call);
  const tags = texts(bodyOf(call), 'tags');
  if (state.dialect === 'headscale') {
    if (tags.length === 0) return done(state.dialect);
    for (const tag of tags) expectAssignableTag(tag, call.token.tags, state.policy);
  } else if (!arePermittedTags(tags, call.token.tags, state.policy)) {
    throw new Refusal(400, `requested tags [${tags.join(' ')}] are invalid or not permitted`);
  }
  await setTags(device.nodeId, tags);
  return change(state, device, { tags });
}

/** `POST /device/{id}/key`. */
export function setDeviceKey(state: State, call: Call): Answer {
  const device = owned(state, call);
  const keyExpiryDisabled = field(bodyOf(call), 'keyExpiryDisabled', 'boolean');
  if (keyExpiryDisabled === undefined) throw new Refusal(400, 'keyExpiryDisabled must be a boolean');
  if (state.dialect === 'headscale' && !keyExpiryDisabled) return done(state.dialect);
  return change(state, device, { keyExpiryDisabled });
}

/** `POST /device/{id}/ip`. */
export function addressDevice(state: State, call: Call): Answer {
  const device = owned(state, call);
  const ipv4 = field(bodyOf(call), 'ipv4', 'string') ?? '';
  if (!isMeshIPv4(ipv4)) throw new Refusal(400, 'ipv4 must be an address in 100.64.0.0/10');
  const [, ...rest] = device.addresses;
  return change(state, device, { addresses: [ipv4, ...rest] });
}

/** `GET /device/{id}/routes`. */
export function getRoutes(state: State, call: Call): Answer {
  const { advertisedRoutes, enabledRoutes } = owned(state, call);
  return ok({ advertisedRoutes, enabledRoutes });
}

/** `POST /device/{id}/routes`. */
export function setRoutes(state: State, call: Call): Answer {
  const device = owned(state, call);
  const enabledRoutes = texts(bodyOf(call), 'routes');
  change(state, device, { enabledRoutes });
  return ok({ advertisedRoutes: device.advertisedRoutes, enabledRoutes });
}

/** Whether a text is an IPv4 address of a tailnet. */
export function isMeshIPv4(text: string): boolean {
  const parts = /^100\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)?.slice(1).map(Number) ?? [];
  const [second = 0] = parts;
  return parts.length === 3 && parts.every(part => part <= 255) && second >= 64 && second <= 127;
}

function change(state: State, device: Device, changes: Partial<Device>): Answer {
  state.devices.put(device.nodeId, { ...device, ...changes });
  return done(state.dialect);
}

function owned(state: State, call: Call): Device {
  const { id = '' } = call.params;
  const device = state.devices.all().find(one => isCalled(one, id));
  if (!device || device.isExternal) throw notFound(state);
  return device;
}

function isCalled(device: Device, id: string): boolean {
  return device.nodeId === id || device.id === id;
}

function notFound({ dialect }: State): Refusal {
  const vendor = 'no manageable device matching this ID found';
  return new Refusal(404, dialect === 'vendor' ? vendor : 'device not found');
}

/** Tokens of OAuth clients do not see devices that other tailnets share. */
function visible(state: State): readonly Device[] {
  return state.devices.list().filter(device => !device.isExternal);
}

function matches(device: Readonly<Record<string, unknown>>, [name, wanted]: [string, string]): boolean {
  const value = device[name];
  return Array.isArray(value) ? value.includes(wanted) : String(value) === wanted;
}

/** A way in which devices are shown. */
type Form = {
  readonly fieldsOf: (device: Device) => Readonly<Record<string, unknown>>;
  readonly encode: (device: Device) => string;
};

/**
 * A device is encoded once, until it changes: a simulator that encodes ten thousand of them for each list would take the
 * processor from what is measured beside it.
 */
function formWith(fieldsOf: Form['fieldsOf']): Form {
  const encoded = new WeakMap<Device, string>();
  const encode = (device: Device) => {
    const json = encoded.get(device) ?? JSON.stringify(fieldsOf(device));
    encoded.set(device, json);
    return json;
  };
  return { fieldsOf, encode };
}

const FORMS = {
  headscale: formWith(headscaleDevice),
  vendor: formWith(device => vendorDevice(device, false)),
  allFields: formWith(device => vendorDevice(device, true)),
};

function formOf({ dialect }: State, { query }: Call): Form {
  if (dialect === 'headscale') return FORMS.headscale;
  return query.get('fields') === 'all' ? FORMS.allFields : FORMS.vendor;
}

function vendorDevice(device: Device, isAll: boolean): Readonly<Record<string, unknown>> {
  const isConnected = device.lastSeenMs === undefined;
  return {
    addresses: device.addresses,
    id: device.id,
    nodeId: device.nodeId,
    user: device.user,
    name: device.name,
    hostname: device.hostname,
    clientVersion: device.clientVersion,
    updateAvailable: false,
    os: device.os,
    created: device.createdMs === undefined ? '' : timestamp(device.createdMs),
    connectedToControl: isConnected,
    ...(isConnected ? {} : { lastSeen: timestamp(device.lastSeenMs) }),
    keyExpiryDisabled: device.keyExpiryDisabled,
    expires: timestamp(device.keyExpiryDisabled ? undefined : device.expiresMs),
    authorized: device.authorized,
    isExternal: device.isExternal,
    isEphemeral: device.isEphemeral,
    multipleConnections: false,
    machineKey: device.machineKey,
    nodeKey: device.nodeKey,
    blocksIncomingConnections: device.blocksIncomingConnections,
    tailnetLockKey: '',
    tailnetLockError: '',
    ...(device.tags.length > 0 ? { tags: device.tags } : {}),
    ...(isAll ? allFieldsOf(device) : {}),
    ...device.more,
  };
}

function allFieldsOf({ advertisedRoutes, enabledRoutes, os }: Device): Readonly<Record<string, unknown>> {
  return {
    advertisedRoutes,
    enabledRoutes,
    clientConnectivity: {
      endpoints: [],
      mappingVariesByDestIP: false,
      latency: { 'New York City': { preferred: true, latencyMs: 12.5 } },
      clientSupports: { hairPinning: false, ipv6: false, pcp: false, pmp: false, udp: true, upnp: false },
    },
    sshEnabled: false,
    distro: { name: os === 'linux' ? 'debian' : '', version: '12', codeName: 'bookworm' },
    postureIdentity: { disabled: true },
  };
}

function headscaleDevice(device: Device): Readonly<Record<string, unknown>> {
  return {
    addresses: device.addresses,
    id: device.id,
    nodeId: device.nodeId,
    user: device.tags.length > 0 ? 'tagged-devices' : device.user,
    name: device.name.split('.')[0],
    hostname: device.hostname,
    clientVersion: device.clientVersion,
    updateAvailable: false,
    os: device.os,
    created: timestamp(device.createdMs),
    ...(device.lastSeenMs === undefined ? {} : { lastSeen: timestamp(device.lastSeenMs) }),
    keyExpiryDisabled: device.keyExpiryDisabled,
    ...(device.keyExpiryDisabled ? {} : { expires: timestamp(device.expiresMs) }),
    authorized: true,
    isEphemeral: device.isEphemeral,
    machineKey: device.machineKey,
    nodeKey: device.nodeKey,
    tags: device.tags,
    ...device.more,
  };
}
