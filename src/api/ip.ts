/** An address as 8 groups of 16 bits; an IPv4 address is its two last groups and marked as such. */
export type Address = { readonly isV4: boolean; readonly groups: readonly number[] };

/** A range of addresses. */
export type Cidr = { readonly base: Address; readonly bits: number };

/** Reads an address the way the API server's isIP does: no zone, no leading zeros, no IPv4 mapped into IPv6. */
export function parseAddress(text: string): Address | undefined {
  return text.includes(':') ? parseV6(text) : parseV4(text);
}

/** Reads a range such as 100.64.0.0/10; throws on anything else, as ranges are written by us. */
export function parseCidr(text: string): Cidr {
  const [, address = '', length = ''] = /^(.*)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const base = parseAddress(address);
  const bits = Number(length);
  if (!base || bits > (base.isV4 ? 32 : 128)) {
    throw new TypeError(`${text} is not a range of addresses`);
  }
  return { base, bits };
}

/** Whether an address lies in a range. */
export function isInside({ base, bits }: Cidr, address: Address): boolean {
  if (base.isV4 !== address.isV4) return false;
  for (let index = 0; index * 16 < bits; index++) {
    const insignificant = Math.max(0, 16 - (bits - index * 16));
    const difference = (base.groups[index] ?? 0) ^ (address.groups[index] ?? 0);
    if (difference >> insignificant !== 0) return false;
  }
  return true;
}

/** Reads each character once: addresses are parsed for every endpoint of every object. */
function parseV4(text: string): Address | undefined {
  const octets: number[] = [];
  let octet = -1;
  for (let index = 0; index <= text.length; index++) {
    const digit = text.charCodeAt(index) - ZERO;
    if (digit >= 0 && digit <= 9 && octet !== 0) octet = Math.max(octet, 0) * 10 + digit;
    else if (octet < 0 || octet > 255 || (index < text.length && text[index] !== '.')) return undefined;
    else {
      octets.push(octet);
      octet = -1;
    }
  }
  const [a = 0, b = 0, c = 0, d = 0] = octets;
  return octets.length === 4 ? { isV4: true, groups: [a * 256 + b, c * 256 + d] } : undefined;
}

const ZERO = '0'.charCodeAt(0);

function parseV6(text: string): Address | undefined {
  const halves = text.split('::');
  const [left, right] = halves.map((half, index) => groupsOf(half, index === halves.length - 1));
  if (!left || halves.length > 2) return undefined;
  if (halves.length === 1) return left.length === 8 ? checkedV6(left) : undefined;
  if (!right || left.length + right.length > 7) return undefined;
  return checkedV6([...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right]);
}

/** The groups of one side of `::`; the last of all may be an IPv4 address. */
function groupsOf(side: string, isLast: boolean): number[] | undefined {
  if (side === '') return [];
  const parts = side.split(':');
  const last = parts.at(-1) ?? '';
  const tail = isLast && last.includes('.') ? parseV4(last)?.groups : undefined;
  const plain = tail ? parts.slice(0, -1) : parts;
  if (!plain.every(part => /^[0-9a-fA-F]{1,4}$/.test(part))) return undefined;
  return [...plain.map(part => parseInt(part, 16)), ...(tail ?? [])];
}

function checkedV6(groups: readonly number[]): Address | undefined {
  const isMapped = groups.slice(0, 5).every(group => group === 0) && groups[5] === 0xffff;
  return isMapped ? undefined : { isV4: false, groups };
}
