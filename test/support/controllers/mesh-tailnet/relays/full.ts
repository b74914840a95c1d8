import { formatServices, MAX_SERVED } from '../../../../../src/api/served-services.ts';
import { MAX_CALLERS, MAX_RELAY_TARGETS } from '../../../../../src/api/shares.ts';
import type { Input } from '../../../../../src/controllers/mesh-tailnet/relays/gather.ts';
import type { Callers } from '../../../../../src/store/callers.ts';
import type { TailnetDestinations } from '../../../../../src/controllers/mesh-tailnet/relays/destinations.ts';
import { declaredBy, frontInput } from './front.ts';

const LONG = `${'a'.repeat(60)}.${'b'.repeat(60)}`;

/** Of four digits, so that all are as long. */
const digits = (n: number) => (0x1000 + n).toString(16);

/** More destinations than fit, each as long as it can be. */
export const FULL_DESTINATIONS: TailnetDestinations = declaredBy(
  Array.from({ length: 4000 }, (_, n) => `fd7a:115c:a1e0:aaaa:aaaa:aaaa:aaaa:${digits(n)} d.${LONG} 65535`),
);

/** 2,000 callers more than fit, with the longest addresses. */
const FULL_CALLERS: Callers = {
  addresses: Array.from(
    { length: MAX_CALLERS + 2000 },
    (_, n) => `fd00:aaaa:aaaa:aaaa:aaaa:aaaa:aaaa:${digits(n)}`,
  ),
  nodeAddresses: [],
};

/** All of which a ConfigMap of relays has something, each as long as it can be, and more callers and destinations than fit. */
export function fullInput(fields: Partial<Input> = {}): Input {
  const front = frontInput({ callers: FULL_CALLERS, destinations: FULL_DESTINATIONS });
  const services = Array.from({ length: MAX_SERVED }, (_, n) => ({
    name: `svc:${'s'.repeat(59)}${digits(n)}`,
    port: 65_535,
    via: 'direct' as const,
    target: `[2001:aaaa:aaaa:aaaa:aaaa:aaaa:aaaa:${digits(n)}]:65535`,
    isAdvertised: false,
  }));
  return {
    tailnet: front.tailnet,
    front,
    services: formatServices(services),
    wanted: Array.from({ length: MAX_RELAY_TARGETS }, (_, n) => ({
      target: `[fd7a:115c:a1e0:aaaa:aaaa:aaaa:aaaa:${digits(n)}]:65535`,
      createdAt: '2026-01-15T12:00:00Z',
      namespace: `team-${n % 8}`,
      name: 'udp',
    })),
    left: new Map(),
    stored: undefined,
    storedServices: undefined,
    storedFront: undefined,
    pods: [],
    serving: [],
    now: 0,
    ...fields,
  };
}
