import { isRecord } from '../api/json.ts';
import type { Fields } from '../api/json.ts';
import { ControlError } from './control.ts';
import type { Device, JoinKey, KeyInfo, ServiceHost, VipService } from './control.ts';
import type { GrantedToken } from './token.ts';

/** The error for a response without what it must have. */
export function malformed(problem: string): ControlError {
  return new ControlError('Malformed', `the response is not one of the control API: ${problem}`);
}

function listIn(body: Fields, name: string): readonly Fields[] {
  const list = body[name];
  if (!Array.isArray(list)) throw malformed(`${name} is no list`);
  return list.map((item: unknown, index) => {
    if (isRecord(item)) return item;
    throw malformed(`${name}[${index}] is no object`);
  });
}

function textIn(fields: Fields, name: string): string {
  const value = fields[name];
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value;
  throw malformed(`${name} is no text`);
}

/** A time, or undefined where there is none, which Go writes as the year 1. */
function timeIn(fields: Fields, name: string): string | undefined {
  const time = textIn(fields, name);
  return time === '' || time.startsWith('0001-01-01') ? undefined : time;
}

function requiredText(fields: Fields, ...names: readonly string[]): string {
  for (const name of names) if (textIn(fields, name) !== '') return textIn(fields, name);
  throw malformed(`${names[0]} is missing`);
}

function textsIn(fields: Fields, name: string): readonly string[] {
  const value = fields[name] ?? [];
  if (Array.isArray(value) && value.every(item => typeof item === 'string')) return value;
  throw malformed(`${name} is no list of texts`);
}

const MAX_LIFETIME_S = 24 * 3600;

/** A grant of the token endpoint. Its lifetime is one hour where it names none, and at most a day. */
export function decodeToken(body: Fields): GrantedToken {
  const given = body['expires_in'];
  const seconds = typeof given === 'number' && given > 0 ? given : 3600;
  return {
    value: requiredText(body, 'access_token'),
    lifetimeMs: Math.min(seconds, MAX_LIFETIME_S) * 1000,
    scopes: textIn(body, 'scope').match(/\S+/g) ?? [],
  };
}

/** A list of devices, of both dialects. */
export function decodeDevices(body: Fields, now: Date): readonly Device[] {
  return listIn(body, 'devices').map(fields => decodeDevice(fields, now));
}

/** A device, of both dialects. Headscale shows no connectedToControl, and both show lastSeen only of those that are offline. */
export function decodeDevice(fields: Fields, now: Date): Device {
  const online = fields['connectedToControl'];
  const expires = fields['keyExpiryDisabled'] === true ? undefined : timeIn(fields, 'expires');
  return {
    id: requiredText(fields, 'nodeId', 'id'),
    name: textIn(fields, 'name'),
    hostname: textIn(fields, 'hostname'),
    addresses: textsIn(fields, 'addresses'),
    tags: textsIn(fields, 'tags'),
    isAuthorized: fields['authorized'] !== false,
    isOnline: typeof online === 'boolean' ? online : textIn(fields, 'lastSeen') === '',
    isExternal: fields['isExternal'] === true,
    expires,
    isExpired: expires !== undefined && Date.parse(expires) <= now.getTime(),
    blocksIncoming: fields['blocksIncomingConnections'] === true,
  };
}

/** The key that was created; the secret is in no other response. */
export function decodeCreatedKey(body: Fields): JoinKey {
  return { id: requiredText(body, 'id'), secret: requiredText(body, 'key') };
}

/** A list of keys. */
export function decodeKeys(body: Fields): readonly KeyInfo[] {
  return listIn(body, 'keys').map(fields => ({
    id: requiredText(fields, 'id'),
    description: textIn(fields, 'description'),
    isInvalid: fields['invalid'] === true,
    isRevoked: timeIn(fields, 'revoked') !== undefined,
  }));
}

/** A list of VIP services; one without any may be null. */
export function decodeServices(body: Fields): readonly VipService[] {
  return body['vipServices'] === null ? [] : listIn(body, 'vipServices').map(decodeService);
}

/** A VIP service. */
export function decodeService(fields: Fields): VipService {
  return {
    name: requiredText(fields, 'name'),
    addrs: textsIn(fields, 'addrs'),
    ports: textsIn(fields, 'ports'),
    tags: textsIn(fields, 'tags'),
    annotations: annotationsIn(fields),
    fields,
  };
}

function annotationsIn(fields: Fields): Readonly<Record<string, string>> {
  const value = fields['annotations'] ?? {};
  const isMap = isRecord(value) && Object.values(value).every(each => typeof each === 'string');
  if (isMap) return value as Readonly<Record<string, string>>;
  throw malformed('annotations are no map of texts');
}

/** The devices that advertise a VIP service; a list without any may be null. */
export function decodeServiceHosts(body: Fields): readonly ServiceHost[] {
  const hosts = body['hosts'] === null ? [] : listIn(body, 'hosts');
  return hosts.map(fields => ({
    deviceId: requiredText(fields, 'stableNodeID'),
    isApproved: textIn(fields, 'approvalLevel').startsWith('approved'),
  }));
}
