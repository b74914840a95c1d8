import type { Clock } from '../../../api/clock.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { endpointsOf } from '../../../api/objects/endpoints.ts';
import { within } from '../../../api/problem.ts';
import type { Why } from '../../../api/problem.ts';
import { TRUST_BYTES, WAITING_FOR_CA } from '../../../api/shares.ts';
import { caRefOf } from '../../../api/trust.ts';
import type { CaRef, TrustedCa } from '../../../api/trust.ts';
import type { EndpointInputs, InputSource } from './inputs.ts';
import type { ReadResources } from '../../../store/resources.ts';

export type CaCertificatesDeps = {
  readonly read: Pick<ReadResources, 'subscribe'>;
  readonly clock: Pick<Clock, 'after'>;
};

/** How long a new caRef waits until it is published, so that its endpoint is not unhealthy at first. */
const PUBLISHED_WITHIN_MS = 2000;

/** The certificates of tls.caRef, as traffic trusts them. */
export function caCertificates({ read, clock }: CaCertificatesDeps): InputSource {
  const waiting = new Map<string, number>();
  const count = (namespace: string, by: number) => {
    const left = (waiting.get(namespace) ?? 0) + by;
    if (left > 0) waiting.set(namespace, left);
    else waiting.delete(namespace);
  };
  return {
    read: async (object, { traffic, run }) => {
      const trusted = (ref: CaRef) => traffic.trusted(ref);
      const refs = caRefsByEndpoint(object);
      const isRead = () => refs.every(([, ref]) => trusted(ref).is !== 'unread');
      const { namespace = '' } = object.metadata;
      if (!isRead() && (waiting.get(namespace) ?? 0) < WAITING_FOR_CA) {
        count(namespace, 1);
        await waitUntil(isRead, { ms: PUBLISHED_WITHIN_MS, signal: run.signal, read, clock });
        count(namespace, -1);
      }
      return new Map(refs.map(([name, ref]) => [name, inputsOf(trusted(ref))]));
    },
  };
}

function caRefsByEndpoint(object: Kinds['MeshEndpoints']): readonly (readonly [string, CaRef])[] {
  return endpointsOf(object).flatMap(endpoint => {
    const ref = caRefOf(object, endpoint);
    return ref ? [[endpoint.name, ref] as const] : [];
  });
}

function inputsOf(ca: TrustedCa): EndpointInputs {
  if (ca.is !== 'found') return { problem: within('tls.caRef cannot be used', ca.why) };
  return { ca: ca.pem, ...(ca.isOutdated && { outdated: OUTDATED }) };
}

const OUTDATED: Why = {
  text: `tls.caRef: its ConfigMap has newer certificates, for which the share of this namespace of ${TRUST_BYTES / 1024} KB has no room`,
  fix: 'use fewer certificates, or equal ones',
};

type WaitOptions = Pick<CaCertificatesDeps, 'read' | 'clock'> & {
  readonly ms: number;
  readonly signal: AbortSignal;
};

/** Waits until changes make a condition true, for this time at most. */
function waitUntil(isTrue: () => boolean, { ms, signal, read, clock }: WaitOptions): Promise<void> {
  return new Promise(resolve => {
    const end = () => {
      unsubscribe();
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.after(ms, end);
    const unsubscribe = read.subscribe(() => {
      if (isTrue()) end();
    });
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
  });
}
