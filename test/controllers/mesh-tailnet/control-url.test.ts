import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../src/api/generated/types.ts';
import type { TailnetView } from '../../../src/control/control.ts';
import { gather } from '../../../src/controllers/mesh-tailnet/gather.ts';
import { OwnNamespace } from '../../support/control/scene.ts';
import { named } from '../../support/declared.ts';
import { meshTailnet } from '../../support/objects.ts';
import { resourceOf } from '../../support/store/resources.ts';

const VENDOR = 'https://api.tailscale.com';
const SHARED = 'https://shared.example';
const OWN = 'https://own.example';
const pool = { mode: 'External', addresses: ['10.0.0.1:1055'] };

/** The control API of a MeshTailnet, or why there is none. */
async function controlAPIOf(spec: object, controlURL: string | undefined) {
  const tailnet = resourceOf(named(meshTailnet({ ...spec }), 'example')) as Kinds['MeshTailnet'];
  const { controlServer, problem } = await gather(tailnet, {
    controlURL,
    ownNamespace: new OwnNamespace(),
    tailnets: { observe: () => Promise.resolve({} as TailnetView), lastView: () => undefined },
    read: { exceptStatus: { find: () => [tailnet] } as never },
    now: () => new Date(0),
  });
  return controlServer?.controlURL ?? problem?.reason;
}

describe('the control API of a MeshTailnet', () => {
  it.each<[string, object, string | undefined, string]>([
    ['is its own', { controlURL: OWN }, SHARED, OWN],
    ['is that of the configuration', {}, SHARED, SHARED],
    ["is the vendor's for its domains where none is configured", {}, undefined, VENDOR],
    [
      "is none for other domains, such as one that ends like the vendor's",
      { tailnet: 'notts.net' },
      undefined,
      'ControlURLMissing',
    ],
    ['is none for proxies that others run', { pool }, undefined, 'ControlURLMissing'],
  ])('%s', async (_, spec, configured, expected) => {
    expect(await controlAPIOf(spec, configured)).toBe(expected);
  });
});
