import { canonicalIPv6, familyOf } from '../api/ip.ts';
import type { MeshEndpoint } from '../api/generated/types.ts';

/** An endpoint's address and port as one text: equal for all ways to write the same address. */
export function addressText({ meshIP, port }: Pick<MeshEndpoint, 'meshIP' | 'port'>): string {
  if (familyOf(meshIP) !== 'ipv6') return `${meshIP}:${port}`;
  return `[${canonicalIPv6(meshIP)}]:${port}`;
}

/** Reads address:port or [address]:port; a name in place of the address is none. */
export function parseSocketAddress(text: string): SocketAddress | undefined {
  const [, bracketed, bare, digits = ''] = /^(?:\[([^\]]*)\]|([^:[\]]*)):([1-9]\d{0,4})$/.exec(text) ?? [];
  const address = bracketed ?? bare;
  const port = Number(digits);
  if (address === undefined || port > 65_535) return undefined;
  return familyOf(address) === (bare === undefined ? 'ipv6' : 'ipv4') ? { address, port } : undefined;
}

/** An address and port that Envoy can connect to: never a name. */
export type SocketAddress = { readonly address: string; readonly port: number };
