import type { AddressGuard } from '../../../traffic/address-guard.ts';
import { caCertificates } from './ca-certificates.ts';
import type { CaCertificatesDeps } from './ca-certificates.ts';
import { externalTargetInputs } from './external-target-inputs.ts';
import type { ExternalTargets } from './external-targets.ts';
import { meshAddressInputs } from './inputs.ts';
import type { InputSource } from './inputs.ts';
import { secretHeaders } from './secret-headers.ts';
import type { SecretsDeps } from './secrets.ts';

type SourcesDeps = CaCertificatesDeps &
  Omit<SecretsDeps, 'periodMs'> & {
    readonly syncPeriodMs: number;
    readonly guard: AddressGuard;
    readonly targets: ExternalTargets;
  };

/** The sources of everything that endpoints refer to outside of their object. */
export function inputSources({ syncPeriodMs, guard, targets, ...deps }: SourcesDeps): readonly InputSource[] {
  return [
    caCertificates(deps),
    secretHeaders({ ...deps, periodMs: syncPeriodMs }),
    meshAddressInputs(guard),
    externalTargetInputs(targets),
  ];
}
