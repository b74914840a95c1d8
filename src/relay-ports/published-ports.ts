import { isDeepStrictEqual } from 'node:util';

/** The relay ports of a tailnet, by target. */
export type PortsOfTailnet = {
  readonly ports: ReadonlyMap<string, { readonly port: number; readonly isConfirmed: boolean }>;
  /** Why a port is missing or not confirmed, with the fix. */
  readonly missing: ReadonlyMap<string, string>;
};

/** The relay ports of all tailnets, by the name of the MeshTailnet. */
export interface PublishedPorts {
  /** Undefined until this process has reconciled the tailnet. */
  of(tailnet: string): PortsOfTailnet | undefined;
  /** Calls a listener with the name of a MeshTailnet at each change; returns the function that unsubscribes it. */
  subscribe(listener: (tailnet: string) => void): () => void;
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
