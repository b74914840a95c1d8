import { BlockList, isIP, SocketAddress } from 'node:net';

type Family = 'ipv4' | 'ipv6';

/** A range of addresses. */
export type Cidr = { readonly family: Family; readonly members: BlockList };

/** IPv4-mapped IPv6 addresses, which the API server's isIP() refuses. */
const MAPPED = new BlockList();
MAPPED.addSubnet('::ffff:0.0.0.0', 96, 'ipv6');

/** The family of an address that the API server's isIP() accepts: without a zone, and not IPv4-mapped. */
export function familyOf(text: string): Family | undefined {
  const version = isIP(text);
  if (version === 4) return 'ipv4';
  return version === 6 && !text.includes('%') && !MAPPED.check(text, 'ipv6') ? 'ipv6' : undefined;
}

/** The canonical text of an IPv6 address. */
export function canonicalIPv6(address: string): string {
  return new SocketAddress({ address, family: 'ipv6' }).address;
}

/** Parses a CIDR such as 100.64.0.0/10; throws if it is not valid. */
export function parseCidr(text: string): Cidr {
  const [, address = '', length = ''] = /^(.*)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const family = familyOf(address);
  const bits = Number(length);
  if (family === undefined || bits > (family === 'ipv4' ? 32 : 128)) {
    throw new TypeError(`${text} is not a range of addresses`);
  }
  const members = new BlockList();
  members.addSubnet(address, bits, family);
  return { family, members };
}

/** Whether a text is a host name, an address or a CIDR. */
export function isHostOrRange(text: string): boolean {
  if (familyOf(text) !== undefined) return true;
  if (!text.includes('/')) return /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/i.test(text) && !/^[0-9.]+$/.test(text);
  try {
    parseCidr(text);
    return true;
  } catch {
    return false;
  }
}

/** Whether a range contains an address; throws if the text is not an address. */
export function containsIP({ family, members }: Cidr, text: string): boolean {
  const ownFamily = familyOf(text);
  if (ownFamily === undefined) throw new TypeError(`${text} is not an address`);
  return ownFamily === family && members.check(text, family);
}
