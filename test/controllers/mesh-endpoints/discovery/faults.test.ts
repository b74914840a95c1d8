import { afterEach, describe, expect, it } from 'vitest';
import { FAULTS } from '../../../../lab/control-api/faults.ts';
import type { Fault } from '../../../../lab/control-api/faults.ts';
import { startDiscovery } from '../../../support/controllers/mesh-endpoints/discovery-scene.ts';
import type { DiscoveryScene } from '../../../support/controllers/mesh-endpoints/discovery-scene.ts';
import { IS_LONG } from '../../../support/eventually.ts';

const scenes: DiscoveryScene[] = [];
afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.close();
});

const NAMES = ['web-1', 'web-2', 'web-3', 'web-4', 'web-5', 'web-6'];
const DIALECTS = ['vendor', 'headscale'] as const;
type Dialect = (typeof DIALECTS)[number];

/** Six devices that are endpoints, and one that is none. */
async function sceneOf(dialect: Dialect): Promise<DiscoveryScene> {
  const scene = await startDiscovery(dialect);
  scenes.push(scene);
  for (const hostname of NAMES) scene.api.addDevice({ hostname, tags: ['tag:web'] });
  scene.api.addDevice({ hostname: 'db-1', tags: ['tag:db'] });
  await scene.intervals(2);
  expect(scene.names()).toEqual(NAMES);
  return scene;
}

const answer = (fields: object): Fault => ({ is: 'answer', status: 200, ...fields });

/** What the control API answers when devices are listed, and whether that is a list. */
const ANSWERS: readonly (readonly [string, boolean, (devices: readonly unknown[]) => Fault])[] = [
  ['an empty list', true, () => answer({ json: { devices: [] } })],
  ['half of the list', true, devices => answer({ json: { devices: devices.slice(0, 3) } })],
  ['a list of others', true, devices => answer({ json: { devices: devices.slice(6) } })],
  ['500', false, () => FAULTS.internalError],
  ['a page of a proxy', false, () => FAULTS.badGateway],
  ['HTML as if it were the list', false, () => FAULTS.html],
  ['nothing', false, () => FAULTS.empty],
  ['a list that is cut off', false, () => ({ is: 'truncate' })],
  ['values of other types', false, () => ({ is: 'wrong-types' })],
  ['JSON without devices', false, () => answer({ json: {} })],
  ['devices without an id', false, () => answer({ json: { devices: [{ name: 'web-1' }] } })],
  ['a reset', false, () => ({ is: 'reset', when: 'before' })],
];

/** Each at both dialects in the long form, and at one of them otherwise. */
const CASES = ANSWERS.flatMap(([title, ...rest], index) =>
  DIALECTS.filter((_, at) => IS_LONG || at === index % 2).map(dialect => [title, dialect, ...rest] as const),
);

/** Ten minutes. */
const INTERVALS = 20;

describe('for ten minutes, the control API answers', () => {
  it.each(CASES)('%s (%s): no endpoint is lost, and none changes', async (_, dialect, isList, faultOf) => {
    const scene = await sceneOf(dialect);
    const before = scene.writes();
    const heal = scene.api.fail({ routes: ['devices.list'], fault: faultOf(await scene.listed()) });
    const seen = new Set<string>();
    for (let times = 0; times < INTERVALS; times++) {
      await scene.intervals(1);
      seen.add(`${scene.names().join()} ${scene.isStale()}`);
    }
    expect([...seen]).toEqual([`${NAMES.join()} ${!isList}`]);
    // The mark alone, and the time of the list after ten minutes.
    expect(scene.writes() - before).toBeLessThanOrEqual(1);
    heal();
    await scene.intervals(2);
    expect([scene.names(), scene.isStale()]).toEqual([NAMES, false]);
    const healed = scene.writes();
    await scene.intervals(3);
    expect(scene.writes()).toBe(healed);
  });
});

describe.each(DIALECTS)('with %s', dialect => {
  it('endpoints stay while neither the list nor single devices can be read', async () => {
    const scene = await sceneOf(dialect);
    const heal = scene.api.fail({
      routes: ['devices.list'],
      fault: answer({ json: { devices: [] } }),
    });
    scene.api.fail({ routes: ['device.get'], fault: FAULTS.internalError, times: 40 });
    await scene.intervals(6);
    expect(scene.names()).toEqual(NAMES);
    heal();
    await scene.intervals(2);
    expect(scene.names()).toEqual(NAMES);
  });

  it('endpoints stay while lists have other devices each time, as many as there are', async () => {
    const scene = await sceneOf(dialect);
    const [some] = await scene.listed();
    for (let list = 0; list < 8; list++) {
      const ids = Array.from({ length: 7 }, (_, at) => `${900 + 10 * list + at}`);
      const devices = ids.map(id => ({ ...(some as object), id, nodeId: id, hostname: id, tags: [] }));
      const heal = scene.api.fail({ routes: ['devices.list'], fault: answer({ json: { devices } }) });
      await scene.intervals(1);
      heal();
      expect(scene.names()).toEqual(NAMES);
    }
  });

  it('a device that does not exist any more leaves, also while lists lack others', async () => {
    const scene = await sceneOf(dialect);
    const { nodeId } = scene.api.state.devices.all().find(({ hostname }) => hostname === 'web-2') ?? {
      nodeId: '',
    };
    const list = await scene.listed();
    scene.api.removeDevice(nodeId);
    scene.api.fail({ routes: ['devices.list'], fault: answer({ json: { devices: list.slice(2, 4) } }) });
    await scene.intervals(1);
    expect(scene.names()).toEqual(NAMES.filter(name => name !== 'web-2'));
  });

  it('a device that goes offline is no endpoint with the next list, and is one again when it is back', async () => {
    const scene = await sceneOf(dialect);
    const { nodeId } = scene.api.state.devices.all().find(({ hostname }) => hostname === 'web-3') ?? {
      nodeId: '',
    };
    scene.api.changeDevice(nodeId, { lastSeenMs: 0 });
    await scene.intervals(1);
    expect(scene.names()).toEqual(NAMES.filter(name => name !== 'web-3'));
    scene.api.changeDevice(nodeId, { lastSeenMs: undefined });
    await scene.intervals(1);
    expect(scene.names()).toEqual(NAMES);
  });
});
