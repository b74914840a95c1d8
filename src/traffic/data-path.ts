import type { DataPath } from '../api/generated/types.ts';
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
