import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { createInterface } from 'node:readline';
import type { KubeClient } from '../../lab/kube/client.ts';

/** A watch of MeshEndpoints without a store: the lower bound for any reader. */
export type BareWatch = {
  /** When the event of an object with a label arrived, by the monotonic clock. */
  readonly arrivedAt: (label: string) => Promise<bigint>;
  readonly stop: () => void;
};

const PATH = '/apis/mesh-gateway.dev/v1alpha1/meshendpoints';

/** Starts a watch of future changes. */
export async function bareWatch(client: KubeClient): Promise<BareWatch> {
  const { access } = client;
  const { body } = await client.request('GET', `${PATH}?limit=1`);
  const { resourceVersion } = (body as { readonly metadata: { readonly resourceVersion: string } }).metadata;
  const arrived = new Map<string, bigint>();
  let wake: () => void = () => undefined;
  const sent = request(`${access.server}${PATH}?watch=1&resourceVersion=${resourceVersion}`, {
    ca: readFileSync(access.caFile),
    headers: { authorization: `Bearer ${access.token}` },
  });
  sent.on('error', () => undefined);
  sent.on('response', response => {
    // Closing it aborts the request.
    response.on('error', () => undefined);
    createInterface({ input: response })
      .on('error', () => undefined)
      .on('line', line => {
        const at = process.hrtime.bigint();
        const [, label] = /"revision":"([^"]*)"/.exec(line) ?? [];
        if (label !== undefined) arrived.set(label, at);
        wake();
      });
  });
  sent.end();
  return {
    arrivedAt: async label => {
      for (;;) {
        const at = arrived.get(label);
        if (at !== undefined) return at;
        await new Promise<void>(resolve => (wake = resolve));
      }
    },
    stop: () => void sent.destroy(),
  };
}
