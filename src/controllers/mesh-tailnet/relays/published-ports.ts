import { isDeepStrictEqual } from 'node:util';
import type { PortsOfTailnet, RelayPorts } from '../../mesh-endpoints/relay-ports.ts';
import type { Confirmation } from './confirmation.ts';
import type { Input } from './gather.ts';
import type { Plan } from './plan.ts';

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

/** The ports of a tailnet on which relays listen or may listen soon, and why others are missing. */
export function portsOf(
  { ports, missing }: Plan,
  { confirmed, failed, pending }: Confirmation,
): PortsOfTailnet {
  const usable = [...ports].filter(([target]) => !failed.has(target));
  return {
    ports: new Map(usable.map(([target, port]) => [target, { port, isConfirmed: confirmed.has(target) }])),
    missing: new Map([...missing, ...failed, ...pending]),
  };
}

const NO_IMAGE =
  'mesh pods have no relay, since the operator has no RELAY_IMAGE: set it to the image of mesh-gateway';

/** Where mesh pods have no relay. */
export function portsWithoutRelays({ wanted }: Input): PortsOfTailnet {
  return { ports: new Map(), missing: new Map(wanted.map(({ target }) => [target, NO_IMAGE])) };
}
