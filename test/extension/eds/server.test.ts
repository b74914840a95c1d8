import { describe, expect, it } from 'vitest';
import { clusterSnapshot, MemorySnapshots } from '../../support/extension/memory-snapshots.ts';
import { ASSIGNMENT_TYPE } from '../../support/extension/envoy.ts';
import { EdsFixture } from '../../support/extension/eds-fixture.ts';

const GATEWAY = 'default/edge';
const WEB = 'httproute/default/web/rule/0';
const API = 'httproute/default/api/rule/0';

/** Snapshots in which both clusters have an endpoint, and an EDS server over them. */
function scene() {
  const snapshots = new MemorySnapshots();
  snapshots.set(WEB, GATEWAY, [80]);
  snapshots.set(API, GATEWAY, [90]);
  return { snapshots, scene: new EdsFixture({ snapshots }) };
}

describe('a cluster to which an Envoy subscribes', () => {
  it('is sent at once, with its type, its version and a nonce', () => {
    const envoy = scene().scene.envoy().begin(GATEWAY, [WEB]);
    expect(envoy.endpoints.get(WEB)).toEqual(['100.64.0.1:80']);
    expect(envoy.responses).toMatchObject([{ typeUrl: ASSIGNMENT_TYPE, nonce: '1' }]);
    expect(envoy.responses[0]?.resources[0]?.resource?.typeUrl).toBe(ASSIGNMENT_TYPE);
    expect(envoy.versions.get(WEB)).toMatch(/^[0-9a-f]{16}$/);
  });

  it('has the same version on every server for the same content', () => {
    const versions = [scene(), scene()].map(({ scene: one }) =>
      one.envoy().begin(GATEWAY, [WEB]).versions.get(WEB),
    );
    expect(versions[0]).toBe(versions[1]);
  });

  it('has another version for other content', () => {
    const { versions } = scene().scene.envoy().begin(GATEWAY, [WEB, API]);
    expect(versions.get(WEB)).not.toBe(versions.get(API));
  });

  it('is sent as removed if no mesh backend has it, so that Envoy does not wait for it', () => {
    const envoy = scene().scene.envoy().begin(GATEWAY, ['httproute/default/unknown/rule/0']);
    expect(envoy.pushed).toEqual([['-httproute/default/unknown/rule/0']]);
  });

  it('is sent as soon as a mesh backend has it', async () => {
    const { snapshots, scene: one } = scene();
    const name = 'httproute/default/later/rule/0';
    const envoy = one.envoy().begin(GATEWAY, [name]);
    snapshots.set(name, GATEWAY, [70]);
    await one.clock.advance(5);
    expect(envoy.pushed).toEqual([[`-${name}`], [name]]);
    expect(envoy.endpoints.get(name)).toEqual(['100.64.0.1:70']);
  });

  it('is sent as empty if its rule has no usable endpoint', () => {
    const { snapshots, scene: one } = scene();
    snapshots.set(WEB, GATEWAY, []);
    const envoy = one.envoy().begin(GATEWAY, [WEB]);
    expect(envoy.pushed).toEqual([[WEB]]);
    expect(envoy.endpoints.get(WEB)).toEqual([]);
  });

  it('is sent for a later request of the stream', () => {
    const envoy = scene().scene.envoy().begin(GATEWAY, [WEB]).subscribe(API);
    expect(envoy.pushed).toEqual([[WEB], [API]]);
  });

  it('is sent again if the Envoy subscribes again', () => {
    const envoy = scene().scene.envoy().begin(GATEWAY, [WEB]).subscribe(WEB);
    expect(envoy.pushed).toEqual([[WEB], [WEB]]);
  });

  it('may differ from Gateway to Gateway', () => {
    const { snapshots, scene: one } = scene();
    snapshots.set(WEB, 'default/other', [8080]);
    expect(one.envoy().begin(GATEWAY, [WEB]).endpoints.get(WEB)).toEqual(['100.64.0.1:80']);
    expect(one.envoy().begin('default/other', [WEB]).endpoints.get(WEB)).toEqual(['100.64.0.1:8080']);
  });

  it('is one of several in a response, up to a size limit', () => {
    const { snapshots, scene: one } = scene();
    const many = Array.from({ length: 300 }, (_, n) => `httproute/default/r/rule/${n}`);
    const ports = Array.from({ length: 100 }, (_, n) => n + 1);
    for (const name of many) snapshots.set(name, GATEWAY, ports);
    const envoy = one.envoy().begin(GATEWAY, many);
    expect(envoy.responses.length).toBeGreaterThan(2);
    expect(envoy.pushed.flat()).toEqual(many);
  });
});

describe('a change', () => {
  it('is sent 5 ms later, together with other changes within that time', async () => {
    const { snapshots, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]);
    snapshots.set(WEB, GATEWAY, [81]);
    await one.clock.advance(4);
    snapshots.set(WEB, GATEWAY, [82]);
    expect(envoy.pushed).toEqual([[WEB]]);
    await one.clock.advance(1);
    expect(envoy.pushed).toEqual([[WEB], [WEB]]);
    expect(envoy.endpoints.get(WEB)).toContain('100.64.0.1:82');
  });

  it('is sent to all subscribed streams and to no other', async () => {
    const { snapshots, scene: one } = scene();
    const [first, second] = [one.envoy().begin(GATEWAY, [WEB]), one.envoy().begin(GATEWAY, [WEB, API])];
    const other = one.envoy().begin(GATEWAY, [API]);
    const elsewhere = one.envoy().begin('default/other', [WEB]);
    snapshots.set(WEB, GATEWAY, [81]);
    await one.clock.advance(5);
    expect([first, second].map(({ pushed }) => pushed.at(-1))).toEqual([[WEB], [WEB]]);
    expect([first, second, other, elsewhere].map(({ pushed }) => pushed.length)).toEqual([2, 2, 1, 1]);
  });

  it('is not sent if the resource stays the same', async () => {
    const { snapshots, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]);
    snapshots.invalidate(WEB, GATEWAY);
    await one.clock.advance(10_000);
    expect(envoy.pushed).toEqual([[WEB]]);
  });

  it('is not sent if it was reverted before the push', async () => {
    const { snapshots, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]);
    snapshots.set(WEB, GATEWAY, [81]);
    snapshots.set(WEB, GATEWAY, [80]);
    await one.clock.advance(10_000);
    expect(envoy.pushed).toEqual([[WEB]]);
  });

  it('is part of the first response of a stream that subscribes before the push', async () => {
    const { snapshots, scene: one } = scene();
    const old = one.envoy().begin(GATEWAY, [WEB]);
    snapshots.set(WEB, GATEWAY, [81]);
    const young = one.envoy().begin(GATEWAY, [WEB]);
    expect(young.endpoints.get(WEB)).toContain('100.64.0.1:81');
    await one.clock.advance(5);
    expect(young.pushed).toEqual([[WEB]]);
    expect(old.versions).toEqual(young.versions);
  });

  it('that removes the last mesh backend is sent as a removal', async () => {
    const { snapshots, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]);
    snapshots.set(WEB, GATEWAY, undefined);
    await one.clock.advance(5);
    expect(envoy.pushed).toEqual([[WEB], [`-${WEB}`]]);
    expect(envoy.endpoints.get(WEB)).toEqual(['100.64.0.1:80']);
  });

  it('that cannot be computed is logged, and the next one is sent', async () => {
    const { snapshots, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]);
    snapshots.failure = new Error('broken');
    snapshots.set(WEB, GATEWAY, [81]);
    await one.clock.advance(5);
    expect(envoy.pushed).toEqual([[WEB]]);
    expect(one.lines).toMatchObject([{ level: 'error', cluster: WEB, gateway: GATEWAY }]);
    snapshots.failure = undefined;
    snapshots.invalidate(WEB, GATEWAY);
    await one.clock.advance(5);
    expect(envoy.endpoints.get(WEB)).toContain('100.64.0.1:81');
  });

  it('is not sent after the server is closed', async () => {
    const { snapshots, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB]);
    snapshots.set(WEB, GATEWAY, [81]);
    one.eds.close();
    await one.clock.advance(100);
    expect(envoy.pushed).toEqual([[WEB]]);
    expect([snapshots.watched, one.clock.timers]).toEqual([0, 0]);
  });

  it('is computed once for all streams of a Gateway', async () => {
    const { snapshots, scene: one } = scene();
    for (let n = 0; n < 10; n++) one.envoy().begin(GATEWAY, [WEB]);
    expect(snapshots.reads).toBe(1);
    snapshots.set(WEB, GATEWAY, [81]);
    await one.clock.advance(5);
    expect(snapshots.reads).toBe(2);
  });
});

describe('an Envoy that reconnects', () => {
  it('is sent an empty response if it is up to date, and later changes', async () => {
    const { snapshots, scene: one } = scene();
    const versions = Object.fromEntries(one.envoy().begin(GATEWAY, [WEB, API]).versions);
    const again = one.envoy().begin(GATEWAY, [WEB, API], versions);
    expect(again.pushed).toEqual([[]]);
    expect(again.responses).toMatchObject([{ typeUrl: ASSIGNMENT_TYPE, nonce: '1' }]);
    again.ack();
    snapshots.set(WEB, GATEWAY, [81]);
    await one.clock.advance(5);
    expect(again.pushed).toEqual([[], [WEB]]);
    await expect(one.metric('eds_answers_total', { answer: 'ack' })).resolves.toBe(1);
  });

  it('is sent an empty response once, and none if it is sent resources', () => {
    const { scene: one } = scene();
    const first = one.envoy().begin(GATEWAY, [WEB]);
    const versions = Object.fromEntries(first.versions);
    const again = one.envoy().begin(GATEWAY, [WEB], versions).ack().unsubscribe(API).ack();
    expect([first.ack().pushed, again.pushed]).toEqual([[[WEB]], [[]]]);
  });

  it('is sent only what changed, even by another server', () => {
    const versions = Object.fromEntries(scene().scene.envoy().begin(GATEWAY, [WEB, API]).versions);
    const { snapshots, scene: other } = scene();
    snapshots.set(WEB, GATEWAY, [81]);
    expect(other.envoy().begin(GATEWAY, [WEB, API], versions).pushed).toEqual([[WEB]]);
  });

  it('is sent the removal of a cluster without mesh backends', () => {
    const { snapshots, scene: one } = scene();
    const versions = Object.fromEntries(one.envoy().begin(GATEWAY, [WEB]).versions);
    snapshots.set(WEB, GATEWAY, undefined);
    expect(one.envoy().begin(GATEWAY, [WEB], versions).pushed).toEqual([[`-${WEB}`]]);
  });

  it('cannot set initial versions after its first request', () => {
    const { scene: one } = scene();
    const version = one.envoy().begin(GATEWAY, [API]).versions.get(API) ?? '';
    const late = { resourceNamesSubscribe: [API], initialResourceVersions: { [API]: version } };
    expect(one.envoy().begin(GATEWAY, [WEB]).request(late).pushed).toEqual([[WEB], [API]]);
  });
});

describe('an Envoy that unsubscribes', () => {
  it('is not sent the cluster any more', async () => {
    const { snapshots, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB, API]).unsubscribe(WEB);
    snapshots.set(WEB, GATEWAY, [81]);
    snapshots.set(API, GATEWAY, [91]);
    await one.clock.advance(5);
    expect(envoy.pushed).toEqual([[WEB, API], [API]]);
    expect(snapshots.watched).toBe(1);
  });

  it('is sent the cluster when it subscribes again', () => {
    const envoy = scene().scene.envoy().begin(GATEWAY, [WEB]).unsubscribe(WEB).subscribe(WEB);
    expect(envoy.pushed).toEqual([[WEB], [WEB]]);
  });

  it('need not have subscribed', () => {
    expect(scene().scene.envoy().begin(GATEWAY, [WEB]).unsubscribe(API).ended).toBeUndefined();
  });

  it('by disconnecting leaves no watches and timers', async () => {
    const { snapshots, scene: one } = scene();
    const envoy = one.envoy().begin(GATEWAY, [WEB, API]);
    snapshots.set(WEB, GATEWAY, [81]);
    envoy.disconnect();
    await one.clock.advance(100);
    expect(envoy.pushed).toHaveLength(1);
    expect([snapshots.watched, one.clock.timers]).toEqual([0, 0]);
    await expect(one.metric('eds_streams')).resolves.toBe(0);
  });

  it('by half-closing ends the stream with OK', () => {
    const envoy = scene().scene.envoy().begin(GATEWAY, [WEB]);
    envoy.finish();
    expect(envoy.ended).toMatchObject({ code: 'OK' });
  });
});

describe('an Envoy that reads slowly', () => {
  it('is sent nothing until it has read, and then the newest version of each cluster', async () => {
    const { snapshots, scene: one } = scene();
    const envoy = one.envoy();
    envoy.canSend = false;
    envoy.begin(GATEWAY, [WEB, API]);
    for (const port of [81, 82, 83]) {
      snapshots.set(WEB, GATEWAY, clusterSnapshot(WEB, []));
      snapshots.set(WEB, GATEWAY, [port]);
      await one.clock.advance(6000);
    }
    expect(envoy.pushed).toEqual([[WEB, API]]);
    envoy.drain();
    expect(envoy.pushed).toEqual([[WEB, API], [WEB]]);
    expect(envoy.endpoints.get(WEB)).toEqual(['100.64.0.1:83']);
  });

  it('is sent nothing if the last change restores what it has', async () => {
    const { snapshots, scene: one } = scene();
    const envoy = one.envoy();
    envoy.canSend = false;
    envoy.begin(GATEWAY, [WEB]);
    for (const port of [81, 80]) {
      snapshots.set(WEB, GATEWAY, [port]);
      await one.clock.advance(6000);
    }
    envoy.drain();
    expect(envoy.pushed).toEqual([[WEB]]);
  });

  it('does not delay other streams', async () => {
    const { snapshots, scene: one } = scene();
    const [slow, quick] = [one.envoy(), one.envoy()];
    slow.canSend = false;
    slow.begin(GATEWAY, [WEB]);
    quick.begin(GATEWAY, [WEB]);
    snapshots.set(WEB, GATEWAY, [81]);
    await one.clock.advance(5);
    expect(quick.pushed).toEqual([[WEB], [WEB]]);
  });
});
