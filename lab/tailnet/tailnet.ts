import { requestJson } from '../process/request-json.ts';

/** The addresses of the test tailnet. */
export type TailnetAddresses = { readonly url: string; readonly admin: string; readonly domain: string };

/** A device of the tailnet, as the control server reports it. */
export type TailnetNode = {
  readonly id: string;
  readonly hostname: string;
  readonly fqdn: string;
  readonly addresses: readonly string[];
  readonly tags: readonly string[];
  readonly online: boolean;
  /** Online, and its peers know how to reach it. */
  readonly reachable: boolean;
  readonly expired: boolean;
  readonly authorized: boolean;
  readonly ephemeral: boolean;
  readonly joinKeyId: string;
  readonly joinedAt: string;
  readonly lastSeen: string;
};

/** A key with which a device may join. */
export type JoinKey = { readonly id: string; readonly key: string };

/** What a join key allows; by default one device joins, once. */
export type JoinKeyOptions = {
  readonly reusable?: boolean;
  readonly ephemeral?: boolean;
  readonly tags?: readonly string[];
  readonly expirySeconds?: number;
  /** The control server whose form the key has, and in whose words it is refused; by default the vendor's. */
  readonly dialect?: 'vendor' | 'headscale';
};

/** Every device of the tailnet. */
export async function listNodes(admin: string): Promise<readonly TailnetNode[]> {
  const { nodes } = (await requestJson('GET', `${admin}/nodes`)) as { nodes: readonly TailnetNode[] };
  return nodes;
}

/** Creates a join key. */
export async function addJoinKey(admin: string, options: JoinKeyOptions): Promise<JoinKey> {
  return (await requestJson('POST', `${admin}/keys`, options)) as JoinKey;
}

/** The state of a join key: `live` while a device can join with it. */
export type JoinKeyState = {
  readonly id: string;
  readonly state: 'live' | 'used' | 'revoked' | 'expired';
  readonly uses: number;
};

/** Every join key that was created, without its secret. */
export async function listJoinKeys(admin: string): Promise<readonly JoinKeyState[]> {
  const { keys } = (await requestJson('GET', `${admin}/keys`)) as { keys: readonly JoinKeyState[] };
  return keys;
}

/** Revokes a join key; the devices that have joined with it stay. */
export async function revokeJoinKey(admin: string, id: string): Promise<void> {
  await requestJson('DELETE', `${admin}/keys/${id}`);
}

/** Deletes a join key, so that its secret is unknown; the devices that have joined with it stay. */
export async function forgetJoinKey(admin: string, id: string): Promise<void> {
  await requestJson('POST', `${admin}/keys/${id}/forget`);
}

/**
 * A change of a device: disconnected, connected again, waiting for approval, approved, or its key expired. With `expire` a
 * join key ends that; with `expire-for-good` join keys are used up, and only deleting the device ends it, as with tagged
 * devices of headscale.
 */
export type NodeChange =
  'offline' | 'online' | 'withdraw-approval' | 'approve' | 'expire' | 'expire-for-good';

/** Changes a device. */
export async function changeNode(admin: string, id: string, change: NodeChange): Promise<void> {
  await requestJson('POST', `${admin}/nodes/${id}/${change}`);
}

/** Replaces the tags of a device. */
export async function setTags(admin: string, id: string, tags: readonly string[]): Promise<void> {
  await requestJson('PUT', `${admin}/nodes/${id}/tags`, { tags });
}

/** Deletes a device and logs it out, as the vendor does: to come back it has to join as a new one. */
export async function removeNode(admin: string, id: string): Promise<void> {
  await requestJson('DELETE', `${admin}/nodes/${id}`);
}

/** Deletes a device as headscale does: its daemon stays `Running`, and its next map request gets a 404. */
export async function forgetNode(admin: string, id: string): Promise<void> {
  await requestJson('POST', `${admin}/nodes/${id}/forget`);
}

/** A VIP service, with the devices that serve it. */
export type TailnetService = {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly hosts: readonly {
    readonly id: string;
    /** Whether it advertises the service. */
    readonly active: boolean;
    /** Whether connections of others go there. */
    readonly primary: boolean;
  }[];
};

/** Creates a VIP service such as svc:web, or returns the existing one. */
export async function createService(admin: string, name: string): Promise<TailnetService> {
  return (await requestJson('PUT', `${admin}/services/${name}`)) as TailnetService;
}

/** Removes a VIP service; devices that serve it lose its addresses. */
export async function removeService(admin: string, name: string): Promise<void> {
  await requestJson('DELETE', `${admin}/services/${name}`);
}

/** Every VIP service of the tailnet. */
export async function listServices(admin: string): Promise<readonly TailnetService[]> {
  const { services } = (await requestJson('GET', `${admin}/services`)) as {
    services: readonly TailnetService[];
  };
  return services;
}
