import { isDeepStrictEqual } from 'node:util';
import type { PortsOfTailnet, RelayPorts } from '../../mesh-endpoints/relay-ports.ts';

/** The relay ports of all tailnets, by the name of the MeshTailnet. */
export interface PublishedPorts extends RelayPorts {
  /** Replaces the ports of a tailnet; undefined removes them. */
  publish(tailnet: string, ports: PortsOfTailnet | undefined): void;
}

/** Without any tailnet. */
export function createPublishedPorts(): PublishedPorts {
  const published = new Map<string, PortsOfTailnet>();
  const listeners = new Set<(tailnet: string) => void>();
  return {
    of: tailnet => published.get(tailnet),
    subscribe: listener => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    publish: (tailnet, ports) => {
      if (isDeepStrictEqual(published.get(tailnet), ports)) return;
      if (ports) published.set(tailnet, ports);
      else published.delete(tailnet);
      for (const listener of listeners) listener(tailnet);
    },
  };
}
