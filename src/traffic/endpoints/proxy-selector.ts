import type { SocketAddress } from '../../api/socket-address.ts';

/**
 * Selects the proxy of each endpoint by rendezvous hashing: when a proxy is added or removed, only the endpoints that use
 * it move, and the order of the list does not matter.
 */
export function proxySelector(
  addresses: readonly SocketAddress[],
): (endpoint: string) => SocketAddress | undefined {
  const hashed = addresses.map(proxy => ({ proxy, hash: hashOf(`${proxy.address} ${proxy.port}`) }));
  hashed.sort((a, b) => a.hash - b.hash);
  return endpoint => {
    const hash = hashOf(endpoint);
    let best = hashed[0];
    let highest = -1;
    for (const candidate of hashed) {
      const rank = mixedBits(hash ^ candidate.hash);
      if (rank > highest) [best, highest] = [candidate, rank];
    }
    return best?.proxy;
  };
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return mixedBits(hash);
}

/** The finalizer of MurmurHash3, so that similar inputs get unrelated hashes. */
function mixedBits(number: number): number {
  const half = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  const whole = Math.imul(half ^ (half >>> 13), 0xc2b2ae35);
  return (whole ^ (whole >>> 16)) >>> 0;
}
