import { canonicalIPv6, familyOf } from './ip.ts';
import type { MeshEndpoint } from './generated/types.ts';

/** An IP address and port that Envoy can connect to: never a host name. */
export type SocketAddress = { readonly address: string; readonly port: number };

/** The address and port of an endpoint as text: equal for all spellings of one IPv6 address. */
export function addressText({ meshIP, port }: Pick<MeshEndpoint, 'meshIP' | 'port'>): string {
  if (familyOf(meshIP) !== 'ipv6') return `${meshIP}:${port}`;
  return `[${canonicalIPv6(meshIP)}]:${port}`;
}

/** The host, in lower case, and the port of an externalTarget. */
export function hostAndPortOf(externalTarget: string): { readonly host: string; readonly port: number } {
  const [host = '', port] = externalTarget.toLowerCase().split(':');
  return { host, port: Number(port) };
}

/** Parses address:port or [address]:port; undefined for a host name. */
export function parseSocketAddress(text: string): SocketAddress | undefined {
  const [, bracketed, bare, digits = ''] = /^(?:\[([^\]]*)\]|([^:[\]]*)):([1-9]\d{0,4})$/.exec(text) ?? [];
  const address = bracketed ?? bare;
  const port = Number(digits);
  if (address === undefined || port > 65_535) return undefined;
  return familyOf(address) === (bare === undefined ? 'ipv6' : 'ipv4') ? { address, port } : undefined;
}
