import type { Lease, LeaseHold, LeasePort } from '../lease.ts';
import { ResourceError } from '../resources.ts';
import { KubeError } from './kube-error.ts';
import { fieldsOf, textIn } from './unstructured.ts';
import type { KubeRequest, KubeTransport } from './transport/transport.ts';

/** What keeping a lease in a cluster works with. */
export type KubernetesLeaseParts = {
  readonly transport: Pick<KubeTransport, 'ask'>;
  readonly namespace: string;
  readonly name: string;
  /** The time of day, which is written for people and never read. */
  readonly date: () => Date;
};

const API_VERSION = 'coordination.k8s.io/v1';

/** The Lease of a name; it needs the rights to get, create and patch it. */
export function kubernetesLease({ transport, namespace, name, date }: KubernetesLeaseParts): LeasePort {
  const all = `/apis/${API_VERSION}/namespaces/${encodeURIComponent(namespace)}/leases`;
  const path = `${all}/${encodeURIComponent(name)}`;
  const what = `Lease ${namespace}/${name}`;
  const ask = async (request: KubeRequest, nothingIs: number): Promise<Lease | undefined> => {
    try {
      return leaseIn(await transport.ask(request), what);
    } catch (error) {
      if (error instanceof KubeError && error.status === nothingIs) return undefined;
      throw resourceErrorOf(error, what);
    }
  };
  const create = (hold: LeaseHold, signal: AbortSignal) => {
    const value = { apiVersion: API_VERSION, kind: 'Lease', metadata: { namespace, name }, spec: {} };
    const spec = specOf(hold, undefined, date());
    const body = { type: 'application/json', value: { ...value, spec } };
    return ask({ verb: 'create', path: all, query: BY_US, body, signal }, 409);
  };
  // A version in a patch makes the server refuse it where the Lease has another; what we do not know is left alone.
  const replace = async (hold: LeaseHold, over: Lease, signal: AbortSignal) => {
    const value = { metadata: { resourceVersion: over.version }, spec: specOf(hold, over, date()) };
    const body = { type: 'application/merge-patch+json', value };
    try {
      return await ask({ verb: 'patch', path, query: BY_US, body, signal }, 409);
    } catch (error) {
      if (error instanceof ResourceError && error.reason === 'Gone') return undefined;
      throw error;
    }
  };
  return {
    read: signal => ask({ verb: 'get', path, signal }, 404),
    write: (hold, over, signal) => (over ? replace(hold, over, signal) : create(hold, signal)),
  };
}

const BY_US = { fieldManager: 'mesh-gateway' };

const MOST_TRANSITIONS = 2 ** 31 - 1;

function specOf({ holder, durationMs, transitions }: LeaseHold, over: Lease | undefined, now: Date) {
  const renewTime = now.toISOString().replace('Z', '000Z');
  return {
    holderIdentity: holder,
    leaseDurationSeconds: Math.max(1, Math.ceil(durationMs / 1000)),
    leaseTransitions: Math.min(transitions, MOST_TRANSITIONS),
    renewTime,
    ...(over?.holder === holder ? {} : { acquireTime: renewTime }),
  };
}

/** Whoever can write Leases can write anything into them. */
function leaseIn(answer: unknown, what: string): Lease {
  const fields = fieldsOf(answer);
  const version = textIn(fieldsOf(fields?.['metadata']), 'resourceVersion');
  if (version === '') {
    throw new ResourceError('Unavailable', `${what}: the answer of the API server is no Lease`);
  }
  const spec = fieldsOf(fields?.['spec']);
  return {
    holder: textIn(spec, 'holderIdentity'),
    durationMs: countIn(spec?.['leaseDurationSeconds']) * 1000,
    transitions: countIn(spec?.['leaseTransitions']),
    version,
  };
}

function countIn(value: unknown): number {
  return Number.isSafeInteger(value) ? Math.max(0, value as number) : 0;
}

function resourceErrorOf(error: unknown, what: string): unknown {
  if (!(error instanceof KubeError)) return error;
  return new ResourceError(reasonOf(error), `${what}: ${error.message}`, { cause: error });
}

function reasonOf({ reason }: KubeError): ResourceError['reason'] {
  if (reason === 'NotFound') return 'Gone';
  return reason === 'Unauthorized' || reason === 'Forbidden' || reason === 'Invalid'
    ? 'Refused'
    : 'Unavailable';
}
