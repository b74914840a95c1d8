import { isAddressOrRange, isHostOrRange } from '../api/ip.ts';
import { SettingError } from '../telemetry/setting-error.ts';
import { createGuard } from '../traffic/address-guard.ts';
import type { AddressGuard } from '../traffic/address-guard.ts';
import { parseOptional } from './settings.ts';
import type { Settings, Values } from './settings.ts';

/** Settings of addresses; all processes of a cluster must have the same values, which their answers depend on. */
export const addressSettings = {
  externalTargetsAllow: {
    name: 'EXTERNAL_TARGETS_ALLOW',
    help: 'hosts, IP addresses and CIDRs that externalTarget may name although they are not public, separated by commas',
    default: '',
    parse: listOf(
      isHostOrRange,
      'a host name, IP address or CIDR; write such as db.corp.example, 10.1.2.3 or 10.1.0.0/16',
    ),
  },
  refusedAddresses: {
    name: 'REFUSED_ADDRESSES',
    help: 'IP addresses and CIDRs that get no traffic as meshIP or externalTarget, separated by commas: where a cluster has pods or Services in 100.64.0.0/10, those',
    default: '',
    parse: listOf(isAddressOrRange, 'an IP address or CIDR; write such as 100.64.0.1 or 100.64.0.0/16'),
  },
  apiServer: {
    name: 'KUBERNETES_SERVICE_HOST',
    help: 'host name or IP address of the API server, which gets no traffic; Kubernetes sets it in pods',
    parse: parseOptional,
  },
} as const satisfies Settings;

/** The guard of a process. */
export function guardOf(settings: Values<typeof addressSettings>): AddressGuard {
  const { externalTargetsAllow: allow, refusedAddresses: refuse, apiServer } = settings;
  return createGuard({ allow, refuse, apiServer: apiServer === undefined ? [] : [apiServer] });
}

function listOf(isValid: (entry: string) => boolean, form: string) {
  return (setting: string, text: string): readonly string[] => {
    const entries = text.split(',').map(entry => entry.trim());
    return entries.filter(Boolean).map(entry => {
      if (isValid(entry)) return entry;
      throw new SettingError(setting, `${JSON.stringify(entry.slice(0, 60))} is not ${form}`);
    });
  };
}
