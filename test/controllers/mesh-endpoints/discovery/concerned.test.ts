import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isEqual } from '../../../../src/api/json.ts';
import type { Kinds } from '../../../../src/api/generated/types.ts';
import { decodeDevices } from '../../../../src/control/decode.ts';
import type { Device } from '../../../../src/control/control.ts';
import { discoveryReader } from '../../../../src/controllers/mesh-endpoints/discovery/discovery.ts';
import type {
  Discovery,
  ReadDiscovery,
} from '../../../../src/controllers/mesh-endpoints/discovery/discovery.ts';
import { DOMAIN, NOW, worlds } from '../../../support/controllers/mesh-endpoints/discovery-model.ts';
import type { World } from '../../../support/controllers/mesh-endpoints/discovery-model.ts';
import { device, GivenDevices } from '../../../support/controllers/mesh-endpoints/given-devices.ts';
import { named } from '../../../support/declared.ts';
import { meshEndpoints, meshTailnet } from '../../../support/objects.ts';
import { resourceOf } from '../../../support/store/resources.ts';

/** The same lists in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

type MeshEndpoints = Kinds['MeshEndpoints'];
type MeshTailnet = Kinds['MeshTailnet'];

const tailnetWith = (allowedTags: World['allowedTags']) =>
  resourceOf(named(meshTailnet(allowedTags ? { allowedTags } : {}), 'example')) as MeshTailnet;

/** An object whose status has an endpoint of the first device of the world, as an earlier process wrote it. */
function objectOf({ spec, devices }: Pick<World, 'spec' | 'devices'>, at: number): MeshEndpoints {
  const object = resourceOf(named(meshEndpoints({ ...spec }), `default/web-${at}`)) as MeshEndpoints;
  const [first] = devices;
  return first ? withWritten(object, first.nodeId) : object;
}

/** The object with an endpoint of a device in its status. */
function withWritten(object: MeshEndpoints, deviceID: string): MeshEndpoints {
  const shown = { source: 'TagSelector', status: 'Healthy', protocol: 'HTTP' } as const;
  const place = { address: '100.64.0.9:80', meshFQDN: `written.${DOMAIN}`, port: 80 };
  const entry = { name: 'written', deviceID, ...shown, ...place };
  return { ...object, status: { discovery: { tailnet: DOMAIN }, endpoints: [entry] } };
}

/** A device that does not change is the same object in the next list. */
function nextList(before: readonly Device[], devices: World['devices']): readonly Device[] {
  return decodeDevices({ devices }, NOW).map(each => before.find(known => isEqual(known, each)) ?? each);
}

/** What decides about endpoints: the time and the length of a list do not. */
function foundIn(discovery: Discovery | undefined): unknown {
  if (discovery?.is !== 'listed') return discovery;
  const { discovered, kept, isStale } = discovery;
  return { discovered, kept, isStale };
}

/** By the metadata of an object, which its copies share. */
const memories = new WeakMap<object, { hasExpected: boolean }>();

/** As the controller does. */
function find(reader: ReadDiscovery, object: MeshEndpoints, tailnet: MeshTailnet): Discovery {
  const own = { tailnet, isAllowed: true };
  const memory = memories.get(object.metadata) ?? { hasExpected: false };
  memories.set(object.metadata, memory);
  reader.expect(object, own, memory);
  return reader.of(object, own);
}

const lists = fc.array(fc.record({ world: worlds, isStale: fc.boolean(), isForgotten: fc.boolean() }), {
  ...{ minLength: 1, maxLength: 6 },
});

describe('a change of a list of devices', () => {
  it('concerns every object that finds something else', () => {
    const property = fc.property(fc.array(worlds, { minLength: 1, maxLength: 3 }), lists, (owners, steps) => {
      const given = new GivenDevices();
      const reader = discoveryReader(given);
      const objects = owners.map(objectOf);
      const tailnet = tailnetWith(owners[0]?.allowedTags);
      const found = new Map<MeshEndpoints, Discovery>();
      let isConcerned = (_object: MeshEndpoints) => true;
      given.subscribe(name => (isConcerned = reader.noteChange(name)));
      for (const { world, isStale, isForgotten } of steps) {
        const { devices = [], expected } = given.lastView('example') ?? {};
        const next = nextList(devices, world.devices);
        const left = [...(expected ?? [])].filter(id => !next.some(each => each.id === id));
        given.list('example', isForgotten ? next.map(each => ({ ...each })) : next, {
          ...{ isStale, expected: new Set(isForgotten ? [] : left) },
        });
        for (const object of objects)
          if (isConcerned(object)) found.set(object, find(reader, object, tailnet));
        for (const object of objects)
          expect(foundIn(found.get(object))).toEqual(
            foundIn(find(reader, { ...object, spec: { ...object.spec } }, tailnet)),
          );
      }
    });
    fc.assert(property, { seed, numRuns: 500 });
  });

  it('concerns no other object, and nothing is computed again for one until it is concerned', () => {
    const given = new GivenDevices();
    const reader = discoveryReader(given);
    const selecting = (key: string) =>
      objectOf({ spec: { tailnet: DOMAIN, tagSelectors: [{ key, operator: 'Exists' }] }, devices: [] }, 0);
    const [web, db] = [selecting('web'), selecting('db')];
    const tailnet = tailnetWith(undefined);
    const [a, b] = [device('a', ['web']), device('b', ['db'])];
    given.list('example', [a, b]);
    reader.noteChange('example');
    const before = find(reader, web, tailnet);
    find(reader, db, tailnet);
    for (const changed of [[a], [a, b], [a, { ...b, isOnline: false }], [a, device('c', ['mail'])]]) {
      given.list('example', changed);
      expect(reader.noteChange('example')(web)).toBe(false);
    }
    const after = find(reader, web, tailnet);
    expect(after.is === 'listed' && before.is === 'listed' && after.discovered === before.discovered).toBe(
      true,
    );
    expect(reader.noteChange('example')(db)).toBe(true);
  });

  it('concerns objects alike whose specs are equal, which a store has once', () => {
    const given = new GivenDevices();
    const reader = discoveryReader(given);
    const spec = { tailnet: DOMAIN, tagSelectors: [{ key: 'web', operator: 'Exists' }] } as const;
    const written = withWritten(objectOf({ spec, devices: [] }, 0), 'gone');
    const other = { ...objectOf({ spec, devices: [] }, 1), spec: written.spec };
    const tailnet = tailnetWith(undefined);
    const concerned = () => {
      const isConcerned = reader.noteChange('example');
      const objects = [written, other].filter(isConcerned);
      for (const object of [written, other]) find(reader, object, tailnet);
      return objects;
    };
    given.list('example', [device('a')]);
    expect(concerned()).toEqual([written, other]);
    given.list('example', [device('a')].concat(device('mail', ['mail'])), { expected: new Set(['gone']) });
    concerned();
    const devices = given.lastView('example')?.devices ?? [];
    // The device that was expected does not exist any more.
    given.list('example', [...devices], { expected: new Set() });
    expect(concerned()).toContain(written);
    given.list('example', [...devices, device('db', ['db'])]);
    expect(concerned()).toEqual([]);
  });

  it('concerns all objects where the list has failed, or there was none', () => {
    const given = new GivenDevices();
    const reader = discoveryReader(given);
    const web = objectOf(
      { spec: { tailnet: DOMAIN, tagSelectors: [{ key: 'web', operator: 'Exists' }] }, devices: [] },
      0,
    );
    const concerned = () => {
      const isConcerned = reader.noteChange('example')(web);
      find(reader, web, tailnetWith(undefined));
      return isConcerned;
    };
    expect(concerned()).toBe(true);
    given.list('example', []);
    expect(concerned()).toBe(true);
    expect(concerned()).toBe(false);
    given.list('example', [], { isStale: true });
    expect(concerned()).toBe(true);
  });
});
