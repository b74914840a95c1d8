import type { Lease, LeaseHold, LeasePort } from '../store/lease.ts';
import { ResourceError } from '../store/resources.ts';
import { KubeError } from './transport/transport.ts';
import { fieldsOf, textIn } from './unstructured.ts';
import { FIELD_MANAGER } from './write/requests.ts';
import type { KubeRequest, KubeTransport } from './transport/transport.ts';

export type KubernetesLeaseDeps = {
  readonly transport: Pick<KubeTransport, 'send'>;
  readonly namespace: string;
  readonly name: string;
  /** The time of day; it is written for people and never read back. */
  readonly date: () => Date;
};

const API_VERSION = 'coordination.k8s.io/v1';

/** A Lease; requires the permissions to get, create and patch it. */
export function kubernetesLease({ transport, namespace, name, date }: KubernetesLeaseDeps): LeasePort {
  const all = `/apis/${API_VERSION}/namespaces/${encodeURIComponent(namespace)}/leases`;
  const path = `${all}/${encodeURIComponent(name)}`;
  const what = `Lease ${namespace}/${name}`;
  const send = async (request: KubeRequest, statusOfUndefined: number): Promise<Lease | undefined> => {
    try {
      return leaseIn(await transport.send(request), what);
    } catch (error) {
      if (error instanceof KubeError && error.status === statusOfUndefined) return undefined;
      throw resourceErrorOf(error, what);
    }
  };
  const create = (hold: LeaseHold, signal: AbortSignal) => {
    const spec = specOf(hold, undefined, date());
    const value = { apiVersion: API_VERSION, kind: 'Lease', metadata: { namespace, name }, spec };
    const body = { type: 'application/json', value };
    return send({ verb: 'create', path: all, query: FIELD_MANAGER, body, signal }, 409);
  };
  // The server refuses a patch with another resourceVersion than that of the Lease, and keeps fields that we do not know.
  const replace = async (hold: LeaseHold, over: Lease, signal: AbortSignal) => {
    const value = { metadata: { resourceVersion: over.version }, spec: specOf(hold, over, date()) };
    const body = { type: 'application/merge-patch+json', value };
    try {
      return await send({ verb: 'patch', path, query: FIELD_MANAGER, body, signal }, 409);
    } catch (error) {
      if (error instanceof ResourceError && error.reason === 'Gone') return undefined;
      throw error;
    }
  };
  return {
    read: signal => send({ verb: 'get', path, signal }, 404),
    write: (hold, over, signal) => (over ? replace(hold, over, signal) : create(hold, signal)),
  };
}

const MAX_TRANSITIONS = 2 ** 31 - 1;

function specOf({ holder, durationMs, transitions }: LeaseHold, over: Lease | undefined, now: Date) {
  const renewTime = now.toISOString().replace('Z', '000Z');
  return {
    holderIdentity: holder,
    leaseDurationSeconds: Math.max(1, Math.ceil(durationMs / 1000)),
    leaseTransitions: Math.min(transitions, MAX_TRANSITIONS),
    renewTime,
    ...(over?.holder === holder ? {} : { acquireTime: renewTime }),
  };
}

/** Invalid values, which any client can write, become empty or 0. */
function leaseIn(response: unknown, what: string): Lease {
  const fields = fieldsOf(response);
  const version = textIn(fieldsOf(fields?.['metadata']), 'resourceVersion');
  if (version === '') {
    throw new ResourceError('Unavailable', `${what}: the response of the API server is not a Lease`);
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
