import { addressSettings, guardOf } from '../process/addresses.ts';
import type { TrafficSettings } from './check/traffic.ts';

/*
 * What of an installation's configuration decides about traffic, as flags of the commands that cannot know it.
 */

/** The flags, in the help of a command. */
export const CONFIGURATION_HELP = `\
  --data-path   how Envoy reaches the mesh by default: Proxy, which is the
                default, or Direct
  --external-targets-allow, --refused-addresses, --kubernetes-service-host
                which addresses may get traffic, as the processes have it in
                EXTERNAL_TARGETS_ALLOW, REFUSED_ADDRESSES and
                KUBERNETES_SERVICE_HOST`;

/** The flags, for parseArgs. */
export const CONFIGURATION = {
  'data-path': { type: 'string', default: 'Proxy' },
  'external-targets-allow': { type: 'string', default: '' },
  'refused-addresses': { type: 'string', default: '' },
  'kubernetes-service-host': { type: 'string', default: '' },
} as const;

/** How traffic is configured by the flags of a command. */
export function configuredBy(
  command: string,
  values: Readonly<Record<keyof typeof CONFIGURATION, string>>,
): TrafficSettings {
  const dataPath = values['data-path'];
  if (dataPath !== 'Proxy' && dataPath !== 'Direct')
    throw new Error(`${command}: --data-path ${JSON.stringify(dataPath)} is neither Proxy nor Direct`);
  const { externalTargetsAllow, refusedAddresses } = addressSettings;
  const [allowed, refused] = [values['external-targets-allow'], values['refused-addresses']];
  const guard = guardOf({
    externalTargetsAllow: externalTargetsAllow.parse('--external-targets-allow', allowed),
    refusedAddresses: refusedAddresses.parse('--refused-addresses', refused),
    apiServer: values['kubernetes-service-host'] || undefined,
  });
  return { dataPath, guard };
}
