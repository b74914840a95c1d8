import { createHash } from 'node:crypto';
import { GROUP } from '../../../api/generated/kinds.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { MESH_POD, poolName, relayName, SKIP_CLEANUP } from '../../../api/names.ts';
import type { ResourceOf } from '../../../api/objects/resource.ts';
import type { Device } from '../../../control/control.ts';
import type { OwnSecret } from '../../../store/own-namespace.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** Held by a MeshTailnet while anything of its pool may exist. */
export const FINALIZER = `${GROUP}/finalizer`;

/** Annotations of the Secret of a mesh pod: the join key in it. */
export const JOIN_KEY = `${GROUP}/join-key`;
export const JOIN_KEY_EXPIRES = `${GROUP}/join-key-expires`;

/** What a pool of one MeshTailnet and one installation is named after. */
export type PoolNames = {
  /** The name of its objects, and the prefix of its pods. */
  readonly pool: string;
  /** The name of the headless Service. */
  readonly headless: string;
  /** The name of the Service and the ConfigMap of its relays. */
  readonly relay: string;
  /** The name of a pod, and of the Secret with its identity. */
  readonly pod: (ordinal: number) => string;
  /** The hostname of a pod in the tailnet. */
  readonly hostname: (ordinal: number) => string;
  /** Whether a device of the tailnet has the hostname of a mesh pod, also of a former one. */
  readonly isHostname: (hostname: string) => boolean;
  /** The description of the join keys of a pod. */
  readonly description: (ordinal: number) => string;
  /** Whether a join key was created for this pool. */
  readonly isDescription: (description: string) => boolean;
};

/** The longest part of a name in the description of a key, which has at most 50 characters. */
const MAX_SHORT_LENGTH = 20;

export function poolNames(tailnet: string, installation: string): PoolNames {
  const pool = poolName(tailnet);
  const hash = createHash('sha256').update(tailnet).digest('hex').slice(0, 8);
  const short = tailnet.length <= MAX_SHORT_LENGTH ? tailnet : `${tailnet.slice(0, 11)}-${hash}`;
  const prefix = `mesh-gateway ${installation} ${short} `;
  const pod = (ordinal: number) => `${pool}-${ordinal}`;
  const isOrdinal = (text: string) => /^\d{1,3}$/.test(text);
  return {
    pool,
    headless: `${pool}-pods`,
    relay: relayName(tailnet),
    pod,
    hostname: ordinal => `${pod(ordinal)}-${installation}`,
    isHostname: hostname =>
      hostname.startsWith(`${pool}-`) &&
      hostname.endsWith(`-${installation}`) &&
      isOrdinal(hostname.slice(pool.length + 1, -installation.length - 1)),
    description: ordinal => `${prefix}${ordinal}`,
    isDescription: description =>
      description.startsWith(prefix) && isOrdinal(description.slice(prefix.length)),
  };
}

/** The Secret of a mesh pod, as far as it is read. */
export type MeshPodSecret = {
  readonly version: string;
  /** When the last key that was created for it expires; it may be used by now. */
  readonly keyExpires: Date;
  /** Whether the key is still in it: meshd removes it once it has joined. */
  readonly hasKey: boolean;
  /** Written by meshd once it has joined. */
  readonly deviceId: string | undefined;
  readonly fqdn: string | undefined;
  readonly ips: readonly string[];
  /** Whether meshd requests another key in place of the one in it. */
  readonly wantsKey: boolean;
};

/** One pod of the pool, its identity, and its device in the tailnet. */
export type MeshPod = {
  readonly ordinal: number;
  readonly name: string;
  readonly hostname: string;
  readonly secret: MeshPodSecret | undefined;
  /** Whether there is a Secret of this name that was not created for a mesh pod: it is neither changed nor deleted. */
  readonly hasForeignSecret: boolean;
  readonly pod: ResourceOf<'Pod'> | undefined;
  readonly device: Device | undefined;
};

/** Whether traffic passes a mesh pod. */
export function isReady({ pod }: Pick<MeshPod, 'pod'>): boolean {
  return pod !== undefined && pod.status.isReady && pod.metadata.deletionTimestamp === undefined;
}

export function isPast(date: Date, now: Date): boolean {
  return date.getTime() <= now.getTime();
}

/** Whether the node key of a device has expired. */
export function hasExpired({ expires }: Pick<Device, 'expires'>, now: Date): boolean {
  return expires !== undefined && isPast(new Date(expires), now);
}

/**
 * The device of a mesh pod: by its id, or by its hostname until meshd has written the id. A pod may write any id into its
 * Secret, and a device may choose any hostname; so both must agree, or else the hostname and a tag that only its owners assign.
 */
export function deviceOf(
  { hostname, secret }: Pick<MeshPod, 'hostname' | 'secret'>,
  devices: readonly Device[],
  ownTags: readonly string[],
): Device | undefined {
  const named = devices.filter(device => device.hostname === hostname && !device.isExternal);
  if (secret?.deviceId !== undefined) return named.find(({ id }) => id === secret.deviceId);
  const tagged = named.filter(({ tags }) => tags.some(tag => ownTags.includes(tag)));
  // An offline one may be that of an earlier installation.
  return tagged.find(({ isOnline }) => isOnline) ?? tagged.at(-1);
}

/** It becomes a part of a path of the control API, so it must not be `..`. */
const DEVICE_ID = /^[A-Za-z0-9]{1,64}$/;

/**
 * Decodes a Secret, which meshd writes: what is not as expected counts as absent. Undefined for a Secret that was not created
 * for a mesh pod.
 */
export function meshPodSecretOf({ version = '', data, annotations }: OwnSecret): MeshPodSecret | undefined {
  const { [JOIN_KEY]: id, [JOIN_KEY_EXPIRES]: expires = '' } = annotations;
  if (id === undefined) return undefined;
  const filled = (key: string) => (data[key] === '' ? undefined : data[key]);
  const { authkey, reissue_authkey: rejected } = data;
  return {
    version,
    keyExpires: dateOf(expires),
    hasKey: authkey !== undefined && authkey !== '',
    deviceId: DEVICE_ID.test(data['device_id'] ?? '') ? data['device_id'] : undefined,
    fqdn: filled('device_fqdn')?.replace(/\.$/, ''),
    ips: addressesOf(data['device_ips'] ?? ''),
    // It names the key that did not work, or that there was none; a newer key answers that.
    wantsKey: rejected !== undefined && rejected !== '' && rejected === (authkey ?? 'no-authkey'),
  };
}

/** An expiry that cannot be read is in the past. */
function dateOf(text: string): Date {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? new Date(0) : date;
}

function addressesOf(text: string): readonly string[] {
  try {
    const addresses: unknown = JSON.parse(text);
    return Array.isArray(addresses) ? addresses.filter(address => typeof address === 'string') : [];
  } catch {
    return [];
  }
}

/** The name of the MeshTailnet of a mesh pod. */
export function poolTailnetsOf(pod: ResourceOf<'Pod'>): readonly string[] {
  const name = pod.metadata.labels?.[MESH_POD.tailnetLabel];
  return name === undefined ? [] : [name];
}

/** How many mesh pods a MeshTailnet should have. */
export function desiredOf({ metadata, spec }: MeshTailnet): number {
  const isManaged = metadata.deletionTimestamp === undefined && spec.pool.mode === 'Managed';
  return isManaged ? spec.pool.replicas : 0;
}

/** Whether anything of a pool may exist, which is removed before its MeshTailnet. */
export function hasFinalizer({ metadata }: MeshTailnet): boolean {
  return metadata.finalizers?.includes(FINALIZER) ?? false;
}

/** Whether a MeshTailnet that is being deleted goes without the removal of what it has in the tailnet. */
export function skipsCleanup(tailnet: MeshTailnet): boolean {
  const { annotations, deletionTimestamp } = tailnet.metadata;
  const isConfirmed = annotations?.[SKIP_CLEANUP] === 'true';
  return isConfirmed && deletionTimestamp !== undefined && hasFinalizer(tailnet);
}
