import { MESH_POD } from '../../../api/names.ts';
import type { ProbeProxies } from '../../../health/check.ts';
import type { Published } from '../../../runtime/published.ts';
import type { ReadResources } from '../../../store/resources.ts';
import { formatAddress } from '../../../telemetry/address.ts';
import { proxiesOf } from '../../../traffic/data-path.ts';
import { podsByTailnet } from './gather.ts';
import { isReady } from './mesh-pods.ts';

/**
 * The members of pools, of a store with the indexes of mesh-tailnet: the ready mesh pods of a managed pool, or the proxies that
 * others run. A MeshTailnet that is being deleted has none, because it carries no traffic either; nor is a mesh pod one
 * whose device may no longer exist, named in `withoutDevice`: a check that hangs there is no result of the endpoint.
 */
export function readyMembers(
  read: Pick<ReadResources, 'get' | 'find'>,
  withoutDevice?: Pick<Published<readonly string[]>, 'of'>,
): ProbeProxies {
  return name => {
    const tailnet = read.get({ kind: 'MeshTailnet', namespace: '', name });
    if (!tailnet || tailnet.metadata.deletionTimestamp !== undefined) return [];
    if (tailnet.spec.pool.mode === 'External') {
      const proxies = proxiesOf(tailnet);
      if (proxies.are !== 'known') return [];
      return proxies.addresses.map(proxy => ({
        name: formatAddress({ host: proxy.address, port: proxy.port }),
        proxy,
        pod: undefined,
      }));
    }
    const lost = withoutDevice?.of(name) ?? [];
    return read.find(podsByTailnet, name).flatMap(pod => {
      const [address] = pod.status.addresses;
      if (address === undefined || !isReady({ pod }) || lost.includes(pod.metadata.name)) return [];
      return [{ name: pod.metadata.name, proxy: { address, port: MESH_POD.ports.proxy }, pod: address }];
    });
  };
}
