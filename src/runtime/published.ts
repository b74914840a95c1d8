import { isDeepStrictEqual } from 'node:util';

/** Values that a controller publishes for others, by the name of a MeshTailnet. */
export interface Published<T> {
  of(tailnet: string): T | undefined;
  /** Calls a listener with each tailnet whose value changes; returns the function that unsubscribes it. */
  subscribe(listener: (tailnet: string) => void): () => void;
  /** Replaces the value of a tailnet; undefined removes it. */
  publish(tailnet: string, value: T | undefined): void;
}

/** Without any tailnet. */
export function createPublished<T>(): Published<T> {
  const published = new Map<string, T>();
  const listeners = new Set<(tailnet: string) => void>();
  return {
    of: tailnet => published.get(tailnet),
    subscribe: listener => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    publish: (tailnet, value) => {
      if (isDeepStrictEqual(published.get(tailnet), value)) return;
      if (value !== undefined) published.set(tailnet, value);
      else published.delete(tailnet);
      for (const listener of listeners) listener(tailnet);
    },
  };
}
