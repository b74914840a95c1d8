import type { InputSource } from './inputs.ts';
import { caCertificates } from './ca-certificates.ts';
import type { CaCertificatesDeps } from './ca-certificates.ts';
import { secretHeaders } from './secret-headers.ts';
import type { SecretsDeps } from './secrets.ts';

/** What endpoints refer to in the namespace of their object. */
export function referenceInputs(
  deps: CaCertificatesDeps & Omit<SecretsDeps, 'periodMs'> & { readonly syncPeriodMs: number },
): readonly InputSource[] {
  return [caCertificates(deps), secretHeaders({ ...deps, periodMs: deps.syncPeriodMs })];
}
