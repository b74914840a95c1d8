import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { createInterface } from 'node:readline';
import type { KubeClient } from '../lab/kube/client.ts';

/** A watch of MeshEndpoints with nothing behind it: what no reader can be faster than. */
export type BareWatch = {
  /** When it told of an object with a label, by the clock of the machine. */
  readonly toldAt: (label: string) => Promise<bigint>;
  readonly stop: () => void;
};

const PATH = '/apis/mesh-gateway.dev/v1alpha1/meshendpoints';

/** Begins a watch of what changes from now on. */
export async function bareWatch(client: KubeClient): Promise<BareWatch> {
  const { access } = client;
  const { body } = await client.request('GET', `${PATH}?limit=1`);
  const { resourceVersion } = (body as { readonly metadata: { readonly resourceVersion: string } }).metadata;
  const told = new Map<string, bigint>();
  let wake: () => void = () => undefined;
  const sent = request(`${access.server}${PATH}?watch=1&resourceVersion=${resourceVersion}`, {
    ca: readFileSync(access.caFile),
    headers: { authorization: `Bearer ${access.token}` },
  });
  sent.on('error', () => undefined);
  sent.on('response', response => {
    // It ends by being cut off.
    response.on('error', () => undefined);
    createInterface({ input: response })
      .on('error', () => undefined)
      .on('line', line => {
        const at = process.hrtime.bigint();
        const [, label] = /"revision":"([^"]*)"/.exec(line) ?? [];
        if (label !== undefined) told.set(label, at);
        wake();
      });
  });
  sent.end();
  return {
    toldAt: async label => {
      for (;;) {
        const at = told.get(label);
        if (at !== undefined) return at;
        await new Promise<void>(resolve => (wake = resolve));
      }
    },
    stop: () => void sent.destroy(),
  };
}
