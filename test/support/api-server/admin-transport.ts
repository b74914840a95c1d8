import { readFileSync } from 'node:fs';
import type { KubeAccess } from '../../../lab/kube/transport.ts';
import { openTransport } from '../../../src/kubernetes/transport/open-transport.ts';
import type { KubeTransport } from '../../../src/kubernetes/transport/transport.ts';
import { systemClock } from '../../../src/runtime/clock.ts';

/** The transport of the product, with the rights of an administrator. */
export function adminTransport({ server, caFile, token }: KubeAccess): KubeTransport {
  const account = {
    server,
    tls: { ca: readFileSync(caFile) },
    headers: { authorization: `Bearer ${token}` },
  };
  return openTransport({
    configSource: { load: () => Promise.resolve(account) },
    clock: systemClock,
    now: () => new Date(),
  });
}
