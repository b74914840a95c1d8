import type { Kinds } from '../../../api/generated/types.ts';
import { endpointsOf } from '../../../api/objects/endpoints.ts';
import type { Key } from '../../../api/key.ts';
import type { ProblemAt, Why } from '../../../api/problem.ts';
import type { AddressGuard } from '../../../traffic/address-guard.ts';
import type { TrafficResources } from '../../../traffic/traffic-resources.ts';
import { meshNameProblem } from '../../../traffic/upstream-tls.ts';

/** A problem that the entry of an endpoint in status.endpoints can have. */
export type EndpointProblem = ProblemAt<'MeshEndpoints status.endpoints'>;

/** What an endpoint refers to outside of its object, as it was read last. */
export type EndpointInputs = {
  /** The certificates of tls.caRef: PEM. */
  readonly ca?: string;
  /** The headers of healthCheck.headersFrom, in its order; the values are secret. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  /** The IP addresses of externalTarget, sorted; where it cannot be resolved now, the last ones. */
  readonly addresses?: readonly string[];
  /** While the endpoint is used: why externalTarget cannot be resolved now, or a wrong meshFQDN. */
  readonly error?: EndpointProblem;
  /** Why an older version of a reference is in use: as `error`, and Ready is False/InvalidReference. */
  readonly outdated?: Why;
  /** Why the endpoint cannot be used: names the field. It is Unhealthy, and Ready is False/InvalidReference. */
  readonly problem?: Why;
  /** Why the endpoint cannot be checked: as `problem`, but its health stays as it is. */
  readonly checkProblem?: Why;
  /** What its check needs is being read: it is checked once that is known. */
  readonly isCheckPending?: boolean;
};

/** How inputs are read in a reconcile. */
export type InputContext = {
  /** Reads that the reconcile depends on. */
  readonly traffic: Pick<TrafficResources, 'trusted'>;
  /** Aborted with the reconcile. The signal is made when it is read, which few inputs do: it costs more than most of them. */
  readonly run: { readonly signal: AbortSignal };
};

/** Reads one kind of references of endpoints: CA certificates, Secrets, or names in DNS. */
export interface InputSource {
  /** The object refers to what it refers to now, which is read in the background from then on; before each `read`. */
  use?(object: Kinds['MeshEndpoints']): void;
  /** By the names of endpoints; without endpoints that have no such reference. It never rejects. */
  read(object: Kinds['MeshEndpoints'], context: InputContext): Promise<ReadonlyMap<string, EndpointInputs>>;
  /** Calls a listener with each MeshEndpoints whose inputs may have changed; returns the function that unsubscribes it. */
  subscribe?(listener: (object: Key) => void): () => void;
  /** The object is deleted or paused. */
  forget?(object: Key): void;
}

/** Refuses endpoints whose meshIP may get no traffic, and reports those whose meshFQDN is not in the tailnet. */
export function meshAddressInputs({ meshProblem }: AddressGuard): InputSource {
  return {
    read: object => {
      const inputs = new Map<string, EndpointInputs>();
      for (const endpoint of endpointsOf(object)) {
        const { name, meshIP, externalTarget } = endpoint;
        const problem = externalTarget === undefined ? meshProblem(meshIP) : undefined;
        const error = meshNameProblem(endpoint, object.spec.tailnet);
        if (problem) inputs.set(name, { problem });
        else if (error) inputs.set(name, { error });
      }
      return Promise.resolve(inputs);
    },
  };
}

/** The inputs of all sources; of two problems of an endpoint, the first counts. */
export async function readInputs(
  sources: readonly InputSource[],
  object: Kinds['MeshEndpoints'],
  context: InputContext,
): Promise<ReadonlyMap<string, EndpointInputs>> {
  const inputs = new Map<string, EndpointInputs>();
  for (const found of await Promise.all(sources.map(source => source.read(object, context)))) {
    for (const [name, each] of found) inputs.set(name, { ...each, ...inputs.get(name) });
  }
  return inputs;
}
