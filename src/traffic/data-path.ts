import type { Kinds, DataPath } from '../api/generated/types.ts';
import { parseSocketAddress } from './socket-address.ts';
import type { SocketAddress } from './socket-address.ts';
import type { Ref } from '../api/key.ts';
import type { TrafficResources } from './traffic-resources.ts';

/** How Envoy reaches the mesh: through the proxies of the MeshTailnet, or being on the mesh itself. */
export type DataPathMode = DataPath['mode'];

/** How the Envoys of a Gateway reach the mesh: as was decided for it, or else as everywhere. */
export function dataPathOf(
  resources: TrafficResources,
  gateway: Ref<'Gateway'>,
  fallback: DataPathMode,
): DataPathMode {
  return resources.binding(gateway)?.spec.settings?.dataPath?.mode ?? fallback;
}

/** The way for whoever cannot know the Gateway. Where Gateways differ, the proxies: whoever is on the mesh reaches them too. */
export function commonDataPath(paths: readonly DataPathMode[]): DataPathMode {
  return paths.length > 0 && paths.every(path => path === 'Direct') ? 'Direct' : 'Proxy';
}

/** The proxies that lead into a tailnet: those that Envoy can be told of, or why there are none. */
export type Proxies =
  | { readonly are: 'known'; readonly addresses: readonly SocketAddress[] }
  | { readonly are: 'unknown' }
  | { readonly are: 'names'; readonly names: readonly string[] };

/** The proxies of a MeshTailnet. Envoy resolves no names for endpoints, so that those with a name are passed over. */
export function proxiesOf({ spec: { pool }, status }: Kinds['MeshTailnet']): Proxies {
  const managed = status?.pool?.proxyAddress;
  const told = pool.mode === 'External' ? (pool.addresses ?? []) : managed ? [managed] : [];
  if (told.length === 0) return { are: 'unknown' };
  const addresses = told.flatMap(text => parseSocketAddress(text) ?? []);
  return addresses.length > 0 ? { are: 'known', addresses } : { are: 'names', names: told };
}

/**
 * Gives each endpoint, named by any text, its proxy, whatever other endpoints there are and in whatever order the proxies
 * are told: where a proxy comes or goes, only those endpoints move that take it or had it.
 */
export function proxySelector(
  addresses: readonly SocketAddress[],
): (endpoint: string) => SocketAddress | undefined {
  const places = addresses.map(proxy => ({ proxy, hash: hashOf(`${proxy.address} ${proxy.port}`) }));
  places.sort((a, b) => a.hash - b.hash);
  return endpoint => {
    const hash = hashOf(endpoint);
    let best = places[0];
    let highest = -1;
    for (const place of places) {
      const rank = mixedBits(hash ^ place.hash);
      if (rank > highest) [best, highest] = [place, rank];
    }
    return best?.proxy;
  };
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return mixedBits(hash);
}

/** The last step of MurmurHash3: whatever numbers are next to each other get far apart. */
function mixedBits(number: number): number {
  const half = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  const whole = Math.imul(half ^ (half >>> 13), 0xc2b2ae35);
  return (whole ^ (whole >>> 16)) >>> 0;
}
