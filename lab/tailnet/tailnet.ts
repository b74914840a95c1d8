import { callJson } from '../process/json-call.ts';

/** Where the test tailnet answers, as it says itself. */
export type TailnetAddresses = { readonly url: string; readonly admin: string; readonly domain: string };

/** A device of the tailnet as its control server sees it. */
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

/** A key with which a device may join, and what it gives. */
export type JoinKey = { readonly id: string; readonly key: string };

/** What a join key is to allow; without more it lets one device join, once. */
export type JoinKeyWish = {
  readonly reusable?: boolean;
  readonly ephemeral?: boolean;
  readonly tags?: readonly string[];
  readonly expirySeconds?: number;
};

/** Every device of the tailnet. */
export async function listNodes(admin: string): Promise<readonly TailnetNode[]> {
  const { nodes } = (await callJson('GET', `${admin}/nodes`)) as { nodes: readonly TailnetNode[] };
  return nodes;
}

/** Makes a join key. */
export async function addJoinKey(admin: string, wish: JoinKeyWish): Promise<JoinKey> {
  return (await callJson('POST', `${admin}/keys`, wish)) as JoinKey;
}

/** What has become of a join key: `live` while a device can join with it. */
export type JoinKeyState = {
  readonly id: string;
  readonly state: 'live' | 'used' | 'revoked' | 'expired';
  readonly uses: number;
};

/** Every join key that there ever was, without what it takes to join. */
export async function listJoinKeys(admin: string): Promise<readonly JoinKeyState[]> {
  const { keys } = (await callJson('GET', `${admin}/keys`)) as { keys: readonly JoinKeyState[] };
  return keys;
}

/** Ends a join key; the devices that have joined with it stay. */
export async function revokeJoinKey(admin: string, id: string): Promise<void> {
  await callJson('DELETE', `${admin}/keys/${id}`);
}

/** What can be done to a device: it can be cut off and brought back, and its key can end. */
export type NodeChange = 'offline' | 'online' | 'expire';

/** Changes a device. */
export async function changeNode(admin: string, id: string, change: NodeChange): Promise<void> {
  await callJson('POST', `${admin}/nodes/${id}/${change}`);
}

/** Puts tags on a device, in place of those that it has. */
export async function setTags(admin: string, id: string, tags: readonly string[]): Promise<void> {
  await callJson('PUT', `${admin}/nodes/${id}/tags`, { tags });
}

/** Takes a device out for good: to come back it has to join as a new one. */
export async function removeNode(admin: string, id: string): Promise<void> {
  await callJson('DELETE', `${admin}/nodes/${id}`);
}
