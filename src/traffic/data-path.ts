import { findCondition } from '../api/conditions.ts';
import type { DataPath, Kinds } from '../api/generated/types.ts';
import type { Ref } from '../api/key.ts';
import type { Why } from '../api/problem.ts';
import { parseSocketAddress } from '../api/socket-address.ts';
import type { SocketAddress } from '../api/socket-address.ts';
import type { TrafficResources } from './traffic-resources.ts';

/** How Envoy reaches the mesh: through the proxies of the MeshTailnet, or as a member of the mesh itself. */
export type DataPathMode = DataPath['mode'];

/** The data path of a Gateway: that of its settings, or else the default. */
export function dataPathOf(
  resources: TrafficResources,
  gateway: Ref<'Gateway'>,
  defaultPath: DataPathMode,
): DataPathMode {
  return resources.gatewaySettings(gateway)?.dataPath?.mode ?? defaultPath;
}

/** The proxies into a tailnet that Envoy can connect to, or why there are none. */
export type Proxies =
  | { readonly are: 'known'; readonly addresses: readonly SocketAddress[] }
  | { readonly are: 'unknown' }
  | { readonly are: 'names'; readonly names: readonly string[] };

/**
 * The proxies of a MeshTailnet; none while it is being deleted. Envoy resolves no names in EDS, so proxies given by host
 * name are skipped.
 */
export function proxiesOf({ metadata, spec: { pool }, status }: Kinds['MeshTailnet']): Proxies {
  if (metadata.deletionTimestamp !== undefined) return { are: 'unknown' };
  const managed = status?.pool?.proxyAddress;
  const texts = pool.mode === 'External' ? (pool.addresses ?? []) : managed ? [managed] : [];
  if (texts.length === 0) return { are: 'unknown' };
  const addresses = texts.flatMap(text => parseSocketAddress(text) ?? []);
  return addresses.length > 0 ? { are: 'known', addresses } : { are: 'names', names: texts };
}

/** Why no proxy of a MeshTailnet can carry traffic, as its conditions report it; undefined where one can. */
export function poolProblemOf(tailnet: Kinds['MeshTailnet']): Why | undefined {
  const { metadata, spec, status } = tailnet;
  if (metadata.deletionTimestamp !== undefined) {
    const fix = 'create it again after its deletion, or move the endpoints to another tailnet';
    return { text: 'it is being deleted', fix };
  }
  if (spec.pool.mode === 'External') {
    return proxiesOf(tailnet).are === 'unknown'
      ? { text: '', fix: 'list one in spec.pool.addresses' }
      : undefined;
  }
  const { proxyAddress, ready = 0 } = status?.pool ?? {};
  if (proxyAddress && ready > 0) return undefined;
  const condition = findCondition(status?.conditions, 'PoolReady');
  if (condition)
    return { text: `PoolReady is ${condition.status}, ${condition.reason}: ${condition.message}` };
  return {
    text: 'it has no condition PoolReady, which the operator writes',
    fix: 'check that the operator runs. Without a cluster set spec.pool.mode to External, and list your own proxies in spec.pool.addresses',
  };
}
