import { isDeepStrictEqual } from 'node:util';
import type { ServicesOfTailnet, VipServices } from '../mesh-endpoints/vip-services.ts';

/** The registrations of the VIP services of all tailnets, by the name of the MeshTailnet. */
export interface PublishedServices extends VipServices {
  /** Replaces those of a tailnet; undefined removes them. */
  publish(tailnet: string, services: ServicesOfTailnet | undefined): void;
}

/** Without any tailnet. */
export function createPublishedServices(): PublishedServices {
  const published = new Map<string, ServicesOfTailnet>();
  const listeners = new Set<(tailnet: string) => void>();
  return {
    of: tailnet => published.get(tailnet),
    subscribe: listener => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    publish: (tailnet, services) => {
      if (isDeepStrictEqual(published.get(tailnet), services)) return;
      if (services) published.set(tailnet, services);
      else published.delete(tailnet);
      for (const listener of listeners) listener(tailnet);
    },
  };
}
