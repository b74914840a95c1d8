import { describe, expect, it } from 'vitest';
import { clusterSnapshot, MemorySnapshots } from '../../support/extension/memory-snapshots.ts';
import { ASSIGNMENT_TYPE } from '../../support/extension/envoy.ts';
import { EdsFixture } from '../../support/extension/eds-fixture.ts';

const GATEWAY = 'default/edge';
const WEB = 'httproute/default/web/rule/0';
const API = 'httproute/default/api/rule/0';

/** A world in which both clusters have an endpoint, and a server of it. */
function scene() {
  const world = new MemorySnapshots();
  world.set(WEB, GATEWAY, [80]);
  world.set(API, GATEWAY, [90]);
  return { world, scene: new EdsFixture({ snapshots: world }) };
}

describe('a cluster that an Envoy names', () => {
  it('is told at once, with its type, its version and a nonce', () => {
    const envoy = scene().scene.envoy().begin(GATEWAY, [WEB]);
    expect(envoy.endpoints.get(WEB)).toEqual(['100.64.0.1:80']);
    expect(envoy.responses).toMatchObject([{ typeUrl: ASSIGNMENT_TYPE, nonce: '1' }]);
    expect(envoy.responses[0]?.resources[0]?.resource?.typeUrl).toBe(ASSIGNMENT_TYPE);
    expect(envoy.versions.get(WEB)).toMatch(/^[0-9a-f]{16}$/);
  });

  it('has the same version from every server, as long as its content is the same', () => {
    const versions = [scene(), scene()].map(({ scene: one }) =>
      one.envoy().begin(GATEWAY, [WEB]).versions.get(WEB),
    );
    expect(versions[0]).toBe(versions[1]);
  });

  it('has another version where its content is another', () => {
    const { versions } = scene().scene.envoy().begin(GATEWAY, [WEB, API]);
    expect(versions.get(WEB)).not.toBe(versions.get(API));
  });

  it('is told as removed where its name means nothing, so that the Envoy need not wait for it', () => {
    const envoy = scene().scene.envoy().begin(GATEWAY, ['httproute/default/nobody/rule/0']);
    expect(envoy.told).toEqual([['-httproute/default/nobody/rule/0']]);
  });

  it('is told as soon as its name means something', async () => {
    const { world, scene: one } = scene();
    const name = 'httproute/default/later/rule/0';
    const envoy = one.envoy().begin(GATEWAY, [name]);
    world.set(name, GATEWAY, [70]);
    await one.clock.advance(5);
    expect(envoy.told).toEqual([[`-${name}`], [name]]);
    expect(envoy.endpoints.get(name)).toEqual(['100.64.0.1:70']);
  });

  it('is told as empty where its rule is known and has no endpoint', () => {
    const { world, scene: one } = scene();
    world.set(WEB, GATEWAY, []);
    const envoy = one.envoy().begin(GATEWAY, [WEB]);
    expect(envoy.told).toEqual([[WEB]]);
    expect(envoy.endpoints.get(WEB)).toEqual([]);
  });

  it('is told with those that are named in later requests of the stream', () => {
    const envoy = scene().scene.envoy().begin(GATEWAY, [WEB]).subscribe(API);
    expect(envoy.told).toEqual([[WEB], [API]]);
  });

  it('is told again where it is named again', () => {
    const envoy = scene().scene.envoy().begin(GATEWAY, [WEB]).subscribe(WEB);
    expect(envoy.told).toEqual([[WEB], [WEB]]);
  });

  it('may differ from Gateway to Gateway', () => {
    const { world, scene: one } = scene();
    world.set(WEB, 'default/other', [8080]);
    expect(one.envoy().begin(GATEWAY, [WEB]).endpoints.get(WEB)).toEqual(['100.64.0.1:80']);
    expect(one.envoy().begin('default/other', [WEB]).endpoints.get(WEB)).toEqual(['100.64.0.1:8080']);
  });

  it('is told in several responses where one would be very long', () => {
    const { world, scene: one } = scene();
    const many = Array.from({ length: 300 }, (_, n) => `httproute/default/r/rule/${n}`);
    const ports = Array.from({ length: 100 }, (_, n) => n + 1);
    for (const name of many) world.set(name, GATEWAY, ports);
    const envoy = one.envoy().begin(GATEWAY, many);
    expect(envoy.responses.length).toBeGreaterThan(2);
    expect(envoy.told.flat()).toEqual(many);
  });
});

describe('a change', () => {
  it('is sent 5 ms later, together with what else changed in that time', async () => {
    const { world, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]);
    world.set(WEB, GATEWAY, [81]);
    await one.clock.advance(4);
    world.set(WEB, GATEWAY, [82]);
    expect(envoy.told).toEqual([[WEB]]);
    await one.clock.advance(1);
    expect(envoy.told).toEqual([[WEB], [WEB]]);
    expect(envoy.endpoints.get(WEB)).toContain('100.64.0.1:82');
  });

  it('is sent to all that follow the cluster and to nobody else', async () => {
    const { world, scene: one } = scene();
    const [first, second] = [one.envoy().begin(GATEWAY, [WEB]), one.envoy().begin(GATEWAY, [WEB, API])];
    const other = one.envoy().begin(GATEWAY, [API]);
    const elsewhere = one.envoy().begin('default/other', [WEB]);
    world.set(WEB, GATEWAY, [81]);
    await one.clock.advance(5);
    expect([first, second].map(({ told }) => told.at(-1))).toEqual([[WEB], [WEB]]);
    expect([first, second, other, elsewhere].map(({ told }) => told.length)).toEqual([2, 2, 1, 1]);
  });

  it('is not sent where what is told stays the same', async () => {
    const { world, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]);
    world.invalidate(WEB, GATEWAY);
    await one.clock.advance(10_000);
    expect(envoy.told).toEqual([[WEB]]);
  });

  it('is not sent where it was taken back before anyone was told', async () => {
    const { world, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]);
    world.set(WEB, GATEWAY, [81]);
    world.set(WEB, GATEWAY, [80]);
    await one.clock.advance(10_000);
    expect(envoy.told).toEqual([[WEB]]);
  });

  it('is known at once to who names the cluster before it is sent to others', async () => {
    const { world, scene: one } = scene();
    const old = one.envoy().begin(GATEWAY, [WEB]);
    world.set(WEB, GATEWAY, [81]);
    const young = one.envoy().begin(GATEWAY, [WEB]);
    expect(young.endpoints.get(WEB)).toContain('100.64.0.1:81');
    await one.clock.advance(5);
    expect(young.told).toEqual([[WEB]]);
    expect(old.versions).toEqual(young.versions);
  });

  it('by which a name means nothing any more is told as removed', async () => {
    const { world, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]);
    world.set(WEB, GATEWAY, undefined);
    await one.clock.advance(5);
    expect(envoy.told).toEqual([[WEB], [`-${WEB}`]]);
    expect(envoy.endpoints.get(WEB)).toEqual(['100.64.0.1:80']);
  });

  it('that cannot be computed leaves what was told, is logged, and is made up for by the next', async () => {
    const { world, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]);
    world.failure = new Error('broken');
    world.set(WEB, GATEWAY, [81]);
    await one.clock.advance(5);
    expect(envoy.told).toEqual([[WEB]]);
    expect(one.lines).toMatchObject([{ level: 'error', cluster: WEB, gateway: GATEWAY }]);
    world.failure = undefined;
    world.invalidate(WEB, GATEWAY);
    await one.clock.advance(5);
    expect(envoy.endpoints.get(WEB)).toContain('100.64.0.1:81');
  });

  it('is not sent any more once the server is closed', async () => {
    const { world, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]);
    world.set(WEB, GATEWAY, [81]);
    one.eds.close();
    await one.clock.advance(100);
    expect(envoy.told).toEqual([[WEB]]);
    expect([world.watched, one.clock.timers]).toEqual([0, 0]);
  });

  it('is computed once for all streams of a Gateway', async () => {
    const { world, scene: one } = scene();
    for (let n = 0; n < 10; n++) one.envoy().begin(GATEWAY, [WEB]);
    expect(world.reads).toBe(1);
    world.set(WEB, GATEWAY, [81]);
    await one.clock.advance(5);
    expect(world.reads).toBe(2);
  });
});

describe('an Envoy that comes back', () => {
  it('is sent a word without endpoints where it has the newest already, and changes as before', async () => {
    const { world, scene: one } = scene();
    const versions = Object.fromEntries(one.envoy().begin(GATEWAY, [WEB, API]).versions);
    const again = one.envoy().begin(GATEWAY, [WEB, API], versions);
    expect(again.told).toEqual([[]]);
    expect(again.responses).toMatchObject([{ typeUrl: ASSIGNMENT_TYPE, nonce: '1' }]);
    again.answer();
    world.set(WEB, GATEWAY, [81]);
    await one.clock.advance(5);
    expect(again.told).toEqual([[], [WEB]]);
    await expect(one.metric('eds_answers_total', { answer: 'ack' })).resolves.toBe(1);
  });

  it('is sent such a word once, and never where it is told something', () => {
    const { scene: one } = scene();
    const first = one.envoy().begin(GATEWAY, [WEB]);
    const versions = Object.fromEntries(first.versions);
    const again = one.envoy().begin(GATEWAY, [WEB], versions).answer().unsubscribe(API).answer();
    expect([first.answer().told, again.told]).toEqual([[[WEB]], [[]]]);
  });

  it('is sent what is new, even from another server', () => {
    const versions = Object.fromEntries(scene().scene.envoy().begin(GATEWAY, [WEB, API]).versions);
    const { world, scene: other } = scene();
    world.set(WEB, GATEWAY, [81]);
    expect(other.envoy().begin(GATEWAY, [WEB, API], versions).told).toEqual([[WEB]]);
  });

  it('is told of what it has and nobody knows any more', () => {
    const { world, scene: one } = scene();
    const versions = Object.fromEntries(one.envoy().begin(GATEWAY, [WEB]).versions);
    world.set(WEB, GATEWAY, undefined);
    expect(one.envoy().begin(GATEWAY, [WEB], versions).told).toEqual([[`-${WEB}`]]);
  });

  it('is not believed about versions after its first request', () => {
    const { scene: one } = scene();
    const version = one.envoy().begin(GATEWAY, [API]).versions.get(API) ?? '';
    const late = { resourceNamesSubscribe: [API], initialResourceVersions: { [API]: version } };
    expect(one.envoy().begin(GATEWAY, [WEB]).request(late).told).toEqual([[WEB], [API]]);
  });
});

describe('an Envoy that follows a cluster no more', () => {
  it('is not told of it any more', async () => {
    const { world, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB, API]).unsubscribe(WEB);
    world.set(WEB, GATEWAY, [81]);
    world.set(API, GATEWAY, [91]);
    await one.clock.advance(5);
    expect(envoy.told).toEqual([[WEB, API], [API]]);
    expect(world.watched).toBe(1);
  });

  it('is told all of it when it follows it again', () => {
    const envoy = scene().scene.envoy().begin(GATEWAY, [WEB]).unsubscribe(WEB).subscribe(WEB);
    expect(envoy.told).toEqual([[WEB], [WEB]]);
  });

  it('may have never followed it', () => {
    expect(scene().scene.envoy().begin(GATEWAY, [WEB]).unsubscribe(API).ended).toBeUndefined();
  });

  it('because it is gone, leaves nothing behind', async () => {
    const { world, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB, API]);
    world.set(WEB, GATEWAY, [81]);
    envoy.breakOff();
    await one.clock.advance(100);
    expect(envoy.told).toHaveLength(1);
    expect([world.watched, one.clock.timers]).toEqual([0, 0]);
    await expect(one.metric('eds_streams')).resolves.toBe(0);
  });

  it('because it says no more, is let go', () => {
    const envoy = scene().scene.envoy().begin(GATEWAY, [WEB]);
    envoy.finish();
    expect(envoy.ended).toMatchObject({ code: 'OK' });
  });
});

describe('an Envoy that reads slowly', () => {
  it('gets nothing more until it has read, and then the newest of each cluster', async () => {
    const { world, scene: one } = scene();
    const envoy = one.envoy();
    envoy.hasRoom = false;
    envoy.begin(GATEWAY, [WEB, API]);
    for (const port of [81, 82, 83]) {
      world.set(WEB, GATEWAY, clusterSnapshot(WEB, []));
      world.set(WEB, GATEWAY, [port]);
      await one.clock.advance(6000);
    }
    expect(envoy.told).toEqual([[WEB, API]]);
    envoy.drain();
    expect(envoy.told).toEqual([[WEB, API], [WEB]]);
    expect(envoy.endpoints.get(WEB)).toEqual(['100.64.0.1:83']);
  });

  it('gets nothing where in the end nothing is new', async () => {
    const { world, scene: one } = scene();
    const envoy = one.envoy();
    envoy.hasRoom = false;
    envoy.begin(GATEWAY, [WEB]);
    for (const port of [81, 80]) {
      world.set(WEB, GATEWAY, [port]);
      await one.clock.advance(6000);
    }
    envoy.drain();
    expect(envoy.told).toEqual([[WEB]]);
  });

  it('does not slow down others', async () => {
    const { world, scene: one } = scene();
    const [slow, quick] = [one.envoy(), one.envoy()];
    slow.hasRoom = false;
    slow.begin(GATEWAY, [WEB]);
    quick.begin(GATEWAY, [WEB]);
    world.set(WEB, GATEWAY, [81]);
    await one.clock.advance(5);
    expect(quick.told).toEqual([[WEB], [WEB]]);
  });
});
