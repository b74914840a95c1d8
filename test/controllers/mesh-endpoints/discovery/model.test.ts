import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MeshEndpointsSpec } from '../../../../src/api/generated/types.ts';
import { validate } from '../../../../src/api/validation/validate.ts';
import { decodeDevices } from '../../../../src/control/decode.ts';
import { discover } from '../../../../src/controllers/mesh-endpoints/discovery/discover.ts';
import type { Discovered } from '../../../../src/controllers/mesh-endpoints/discovery/discover.ts';
import {
  DOMAIN,
  isEarlier,
  modelOf,
  NOW,
  worlds,
} from '../../../support/controllers/mesh-endpoints/discovery-model.ts';
import type { ListedDevice, World } from '../../../support/controllers/mesh-endpoints/discovery-model.ts';
import { runs } from '../../../support/runs.ts';

/** The same worlds in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

function check(property: fc.IPropertyWithHooks<[World]>, numRuns: number): void {
  fc.assert(property, { ...runs(numRuns), seed });
}

/** The spec as it is stored, with the defaults of its fields. */
function stored(spec: World['spec']): MeshEndpointsSpec {
  const object = {
    apiVersion: 'mesh-gateway.dev/v1alpha1',
    kind: 'MeshEndpoints',
    metadata: { name: 'a' },
    spec,
  };
  const verdict = validate('MeshEndpoints', object);
  if (!verdict.valid) throw new Error(JSON.stringify(verdict.faults));
  return (verdict.object as { readonly spec: MeshEndpointsSpec }).spec;
}

function discovered({ spec, devices, allowedTags }: World): Discovered {
  return discover(stored(spec), decodeDevices({ devices }, NOW), allowedTags);
}

const DEVICE: ListedDevice = {
  ...{ nodeId: 'n1CNTRL', name: `web.${DOMAIN}`, addresses: ['100.64.0.1'], tags: ['tag:web'] },
  ...{ authorized: true, isExternal: false, connectedToControl: true },
  ...{ blocksIncomingConnections: false, keyExpiryDisabled: true, expires: '' },
};

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

describe('the endpoints that are discovered', () => {
  it('are those of the model', () => {
    const property = fc.property(worlds, world => {
      const { endpoints, matched } = discovered(world);
      const model = modelOf(world);
      const found = endpoints.map(({ deviceID, endpoint }) => {
        const { meshIP, meshFQDN, port, protocol, metadata = {} } = endpoint;
        return { deviceID, meshIP, meshFQDN, port, protocol, metadata };
      });
      const expected = model.endpoints.map(({ label: _, isFirst: __, ...fields }) => fields);
      expect(byDevice(found)).toEqual(byDevice(expected));
      expect(matched).toBe(model.matched.length);
    });
    check(property, 1000);
  });

  it('have the fields of the template', () => {
    const property = fc.property(worlds, world => {
      const { weight = 1 } = world.spec.endpointTemplate ?? {};
      for (const { endpoint } of discovered(world).endpoints)
        expect(endpoint).toMatchObject({ weight, priority: 0 });
    });
    check(property, 300);
  });

  it('are named after their devices, the later ones of a name with a part of their IDs', () => {
    const property = fc.property(worlds, world => {
      const model = new Map(modelOf(world).endpoints.map(each => [each.deviceID, each]));
      for (const { deviceID, endpoint } of discovered(world).endpoints) {
        const { label = '', isFirst } = model.get(deviceID) ?? {};
        expect(endpoint.name).toMatch(LABEL);
        if (isFirst) expect(endpoint.name).toBe(label);
        else expectSuffixed(endpoint.name, label, deviceID);
      }
    });
    check(property, 600);
  });

  it('have names of their own, in the order of these', () => {
    const property = fc.property(worlds, world => {
      const names = discovered(world).endpoints.map(({ endpoint }) => endpoint.name);
      const taken = (world.spec.endpoints ?? []).map(({ name }) => name);
      expect(new Set([...taken, ...names]).size).toBe(taken.length + names.length);
      expect(names).toEqual(names.toSorted());
    });
    check(property, 300);
  });

  it('do not depend on the order of devices, tags and selectors', () => {
    const property = fc.property(worlds, world => {
      const { beyondAllowed, ...rest } = discovered(world);
      const inOrder = discovered({ ...world, spec: turned(world).spec });
      expect(discovered(turned(world))).toEqual({ ...rest, beyondAllowed: inOrder.beyondAllowed });
      expect(beyondAllowed.toSorted()).toEqual(inOrder.beyondAllowed.toSorted());
    });
    check(property, 300);
  });

  it('keep their names when a later device joins', () => {
    const property = fc.property(worlds, ({ devices, ...rest }) => {
      const [latest, ...others] = devices.toSorted((one, other) =>
        isEarlier(one.nodeId, other.nodeId) ? 1 : -1,
      );
      const before = namesOf(discovered({ ...rest, devices: others }));
      const after = namesOf(discovered({ ...rest, devices }));
      for (const [deviceID, name] of before) expect(after.get(deviceID)).toBe(name);
      expect(after.size - before.size).toBeLessThanOrEqual(latest ? 1 : 0);
    });
    check(property, 300);
  });

  it('lack the devices without a port, and those that the template does not fit, which are named', () => {
    const property = fc.property(worlds, world => {
      const { withoutPort, misfits } = discovered(world);
      const model = modelOf(world);
      expect(withoutPort.toSorted()).toEqual(model.withoutPort.toSorted());
      expect(misfits.map(text => text.split(': ')[0]).toSorted()).toEqual(model.misfits.toSorted());
    });
    check(property, 300);
  });
});

describe('objects of one list of devices', () => {
  it('do not depend on what was found for others', () => {
    const property = fc.property(worlds, fc.array(worlds, { maxLength: 3 }), (world, others) => {
      const devices = decodeDevices({ devices: world.devices }, NOW);
      const find = ({ spec, allowedTags }: World) => discover(stored(spec), devices, allowedTags);
      for (const other of others) find(other);
      expect(find(world)).toEqual(discovered(world));
    });
    fc.assert(property, { ...runs(300), seed });
  });

  it('do not take a selector for the allowed tags', () => {
    const devices = decodeDevices({ devices: [DEVICE] }, NOW);
    const find = (
      tagSelectors: NonNullable<World['spec']['tagSelectors']>,
      allowedTags?: readonly string[],
    ) => discover(stored({ tailnet: DOMAIN, tagSelectors }), devices, allowedTags).matched;
    expect(find([{ key: 'allowed', operator: 'In', values: ['web'] }])).toBe(0);
    expect(find([{ key: 'web', operator: 'Exists' }], ['tag:web'])).toBe(1);
  });
});

describe('more devices than an object may have endpoints', () => {
  const devices = Array.from({ length: 1200 }, (_, at): ListedDevice => {
    const name = `web-${String(at).padStart(4, '0')}.${DOMAIN}`;
    return { ...DEVICE, nodeId: `n${at}CNTRL`, name, addresses: [`100.64.${at >> 8}.${at & 255}`] };
  });

  it.each([0, 1, 999, 1000])('leave room for %i static ones, and the first by name are used', count => {
    const listed = Array.from({ length: count }, (_, at) => ({
      ...{
        name: `static-${at}`,
        meshIP: `100.100.${at >> 8}.${at & 255}`,
        meshFQDN: 'static.example.ts.net',
      },
      ...{ port: 80, protocol: 'HTTP' as const },
    }));
    const spec = {
      ...{ tailnet: 'example.ts.net', endpoints: listed },
      tagSelectors: [{ key: 'web', operator: 'Exists' as const }],
    };
    const { endpoints, truncated, matched } = discovered({
      spec,
      devices: devices.toReversed(),
      allowedTags: undefined,
    });
    expect(endpoints.map(({ endpoint }) => endpoint.name)).toEqual(
      devices.slice(0, 1000 - count).map(({ name }) => name.split('.')[0]),
    );
    expect([truncated, matched]).toEqual([200 + count, 1200]);
  });
});

function byDevice<T extends { readonly deviceID: string }>(list: readonly T[]): readonly T[] {
  return list.toSorted((one, other) => (one.deviceID < other.deviceID ? -1 : 1));
}

function expectSuffixed(name: string, label: string, deviceID: string): void {
  const [, base = '', suffix = ''] = /^(.+)-([a-z0-9]+)$/.exec(name) ?? [];
  expect(base).not.toBe('');
  expect(label.startsWith(base)).toBe(true);
  expect(deviceID.toLowerCase()).toContain(suffix);
}

function namesOf({ endpoints }: Discovered): ReadonlyMap<string, string> {
  return new Map(endpoints.map(({ deviceID, endpoint }) => [deviceID, endpoint.name]));
}

function turned({ spec, devices, allowedTags }: World): World {
  const { tagSelectors = [] } = spec;
  return {
    spec: { ...spec, tagSelectors: tagSelectors.toReversed() },
    devices: devices.map(({ tags, ...rest }) => ({ ...rest, tags: tags.toReversed() })).toReversed(),
    allowedTags: allowedTags?.toReversed(),
  };
}
