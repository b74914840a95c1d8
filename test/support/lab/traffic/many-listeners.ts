import { gatewayObjects } from '../../../../lab/gateway/objects.ts';
import type { KubernetesObject } from '../../../../lab/gateway/objects.ts';
import { versionOfBinary } from '../../../../lab/parts/locate.ts';
import { freePorts } from '../../../../lab/process/ports.ts';
import type { ListenerName } from '../../../../lab/state.ts';

/** Additional listeners: kinds below HTTP need one for each route. */
export type MoreListeners = { readonly tcp?: readonly string[]; readonly udp?: readonly string[] };

/** The port of each listener. */
export type ListenerPorts = Readonly<Record<string, number>> & Readonly<Record<ListenerName, number>>;

/** Free ports for the listeners of the lab and the additional ones. */
export async function portsFor({ tcp = [], udp = [] }: MoreListeners): Promise<ListenerPorts> {
  const names = ['http', 'tls', 'tcp', 'udp', ...tcp, ...udp];
  const ports = await freePorts(names.length);
  return Object.fromEntries(names.map((name, index) => [name, ports[index]])) as ListenerPorts;
}

/** The Gateway of the lab and its GatewayClass, with additional listeners. */
export function gatewayWith(
  ports: ListenerPorts,
  { tcp = [], udp = [] }: MoreListeners,
): readonly KubernetesObject[] {
  const listener = (protocol: string) => (name: string) => ({
    name,
    protocol,
    port: ports[name],
    allowedRoutes: { namespaces: { from: 'All' } },
  });
  return gatewayObjects(ports, versionOfBinary('envoy')).map(object => {
    if (object.kind !== 'Gateway') return object;
    const spec = object['spec'] as { readonly listeners: readonly unknown[] };
    const listeners = [...spec.listeners, ...tcp.map(listener('TCP')), ...udp.map(listener('UDP'))];
    return { ...object, spec: { ...spec, listeners } };
  });
}
