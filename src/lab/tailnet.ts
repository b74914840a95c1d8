import { callJson } from './json-call.ts';

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

/** What can be done to a device: it can be cut off and brought back, and its key can end. */
export type NodeChange = 'offline' | 'online' | 'expire';

/** Changes a device. */
export async function changeNode(admin: string, id: string, change: NodeChange): Promise<void> {
  await callJson('POST', `${admin}/nodes/${id}/${change}`);
}
