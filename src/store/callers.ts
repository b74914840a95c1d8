import { isDeepStrictEqual } from 'node:util';

/** The addresses of a pod that may send: from the moment it has one, until it has ended. */
export type PodAddresses = {
  readonly uid: string;
  /** Its addresses are those of its node, which other pods have, too. */
  readonly isHostNetwork: boolean;
  readonly addresses: readonly string[];
  /** Of its node. */
  readonly nodeAddresses: readonly string[];
};

/** Who may call the proxies of mesh pods; all lists are sorted, and have each address once, in its canonical text. */
export type Callers = {
  /** Of the pods of the operator, and then of Envoys. */
  readonly addresses: readonly string[];
  /** Of the nodes of Envoys, and of pods that use the network of their node. */
  readonly nodeAddresses: readonly string[];
};

/** The callers of a cluster, as they change. */
export interface ReadCallers {
  /** Undefined until all of their pods have been listed. */
  current(): Callers | undefined;
  /** Calls a listener after each change; returns the function that unsubscribes it. */
  subscribe(listener: () => void): () => void;
}

/** Whose pods they are: only the nodes of Envoys count. */
type CallerRole = 'envoy' | 'operator';

/** The callers, from pods that are watched in several places. */
export type GatheredCallers = ReadCallers & {
  /** Adds a place; returns the function that is called with all of its pods, first when they have been listed. */
  readonly add: (role: CallerRole) => (pods: readonly PodAddresses[]) => void;
};

type Place = { readonly role: CallerRole; pods: readonly PodAddresses[] | undefined };

/** Without any place. */
export function gatherCallers(): GatheredCallers {
  const places: Place[] = [];
  const listeners = new Set<() => void>();
  let current: Callers | undefined;
  const update = () => {
    const next = callersIn(places);
    if (next === undefined || isDeepStrictEqual(next, current)) return;
    current = next;
    for (const listener of [...listeners]) listener();
  };
  return {
    current: () => current,
    subscribe: listener => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    add: role => {
      const place: Place = { role, pods: undefined };
      places.push(place);
      return pods => {
        place.pods = pods;
        update();
      };
    },
  };
}

function callersIn(places: readonly Place[]): Callers | undefined {
  const ofRole = { operator: new Set<string>(), envoy: new Set<string>() };
  const nodeAddresses = new Set<string>();
  for (const { role, pods } of places) {
    if (!pods) return undefined;
    for (const pod of pods) {
      for (const address of pod.addresses) (pod.isHostNetwork ? nodeAddresses : ofRole[role]).add(address);
      if (role === 'envoy') for (const address of pod.nodeAddresses) nodeAddresses.add(address);
    }
  }
  const addresses = [...new Set([...[...ofRole.operator].sort(), ...[...ofRole.envoy].sort()])];
  return { addresses, nodeAddresses: [...nodeAddresses].sort() };
}
