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

/** The canonical text of an address; any other text stays as it is. */
export function canonicalIP(text: string): string {
  return familyOf(text) === 'ipv6' ? canonicalIPv6(text) : text;
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
  if (isAddressOrRange(text)) return true;
  return /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/i.test(text) && !/^[0-9.]+$/.test(text);
}

/** Whether a text is an address or a CIDR. */
export function isAddressOrRange(text: string): boolean {
  if (familyOf(text) !== undefined) return true;
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

const MESH = [parseCidr('100.64.0.0/10'), parseCidr('fd7a:115c:a1e0::/48')];
/** No device has such an address, but the metadata service of a cloud may. */
const NO_DEVICES = parseCidr('100.100.100.0/24');

/** Whether a text is what the schema accepts as meshIP: the address of a device. */
export function isMeshIP(text: string): boolean {
  if (familyOf(text) === undefined) return false;
  return MESH.some(range => containsIP(range, text)) && !containsIP(NO_DEVICES, text);
}

/** The prefix of IPv4 addresses that a NAT64 translates; they count as the IPv4 address. */
const NAT64 = '64:ff9b::';

/** The ranges of addresses and CIDRs, each of which `isAddressOrRange` accepts. */
export function rangesOf(texts: readonly string[]): BlockList {
  const ranges = new BlockList();
  for (const text of texts) {
    const [address = '', length] = text.split('/');
    if (isIP(address) === 4) {
      const bits = Number(length ?? 32);
      ranges.addSubnet(address, bits, 'ipv4');
      ranges.addSubnet(`${NAT64}${address}`, 96 + bits, 'ipv6');
    } else ranges.addSubnet(address, Number(length ?? 128), 'ipv6');
  }
  return ranges;
}

/** Whether ranges contain an address, in any spelling; IPv4-mapped addresses count as the IPv4 address. */
export function containsAddress(ranges: BlockList, address: string): boolean {
  const version = isIP(address);
  return version !== 0 && ranges.check(address, version === 4 ? 'ipv4' : 'ipv6');
}
