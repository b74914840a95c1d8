import { describe, expect, it } from 'vitest';
import type { Verdict } from '../../../src/health/health.ts';
import { device } from '../../support/controllers/mesh-endpoints/given-devices.ts';
import { named } from '../../support/declared.ts';
import { EndpointsScene } from '../../support/controllers/mesh-endpoints/scene.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../support/objects.ts';

const tailnet = named(meshTailnet(), 'one');
const checkedList = (count: number) =>
  Array.from({ length: count }, (_, at) =>
    endpoint({ name: `e${at}`, meshIP: `100.64.0.${at + 1}`, healthCheck: { enabled: true } }),
  );
const web = (count: number, fields: object = {}) =>
  named(meshEndpoints({ endpoints: checkedList(count), ...fields }), 'default/web');

const notes = (scene: EndpointsScene) =>
  scene.events.splice(0).map(({ type, reason, note }) => `${type} ${reason} ${note}`);

describe('the Events of endpoints', () => {
  it('are none for a new object whose endpoints turn out healthy', async () => {
    const scene = await EndpointsScene.start(tailnet, web(2));
    await scene.decide('e0');
    await scene.decide('e1');
    expect(notes(scene)).toEqual([]);
  });

  it('are one for each transition, with name, address and error', async () => {
    const scene = await EndpointsScene.start(tailnet, web(2));
    await scene.decide('e0');
    await scene.decide('e1', 'connection refused');
    expect(scene.events[0]).toMatchObject({
      regarding: { apiVersion: 'mesh-gateway.dev/v1alpha1', kind: 'MeshEndpoints', name: 'web' },
      action: 'Check',
    });
    expect(notes(scene)).toEqual([
      'Warning EndpointUnhealthy endpoint e1 (100.64.0.2:8080): connection refused',
    ]);
    await scene.restart();
    await scene.decide('e1', 'timeout after 10s');
    await scene.decide('e1');
    expect(notes(scene)).toEqual(['Normal EndpointHealthy endpoint e1 (100.64.0.2:8080)']);
  });

  it('are at most 10 of one write, and one that sums up the others', async () => {
    const scene = await EndpointsScene.start(tailnet, web(30));
    for (let at = 0; at < 30; at++) {
      const lastChecked = scene.now();
      const verdict: Verdict =
        at % 2 === 0
          ? { is: 'healthy', lastChecked }
          : { is: 'unhealthy', error: 'refused', code: undefined, lastChecked };
      scene.health.decide('MeshEndpoints/default/web', `e${at}`, verdict);
    }
    await scene.runtime.clock.settle();
    const reported = notes(scene);
    expect(reported).toHaveLength(11);
    expect(reported[10]).toBe(
      'Warning EndpointUnhealthy 5 more endpoints changed: 5 unhealthy, 0 healthy (see status.endpoints)',
    );
  });
});

describe('the Events of discovery', () => {
  const example = named(meshTailnet(), 'example');
  const selecting = (fields: object = {}) =>
    web(0, { endpoints: undefined, tagSelectors: [{ key: 'web', operator: 'Exists' }], ...fields });
  const devices = (...octets: readonly number[]) =>
    octets.map(at => device(`web-${at}`, ['web'], { addresses: [`100.64.0.${at}`] }));
  const about = (scene: EndpointsScene) =>
    notes(scene).filter(text => / (Devices\w+|PortUnknown|Stale) /.test(text));

  it('are one for all devices that came, and one for all that left', async () => {
    const scene = await EndpointsScene.start(example, selecting());
    await scene.list(devices(1, 2));
    expect(about(scene)).toEqual([
      'Normal DevicesDiscovered 2 devices discovered: web-1 (100.64.0.1:80), web-2 (100.64.0.2:80)',
    ]);
    await scene.list(devices(2, 3));
    expect(about(scene)).toEqual([
      'Normal DevicesDiscovered 1 device discovered: web-3 (100.64.0.3:80)',
      'Normal DevicesLeft 1 device left: web-1 (100.64.0.1:80)',
    ]);
    await scene.restart();
    await scene.list(devices(2, 3));
    expect(about(scene)).toEqual([]);
  });

  it('name 10 of many devices', async () => {
    const scene = await EndpointsScene.start(example, selecting());
    await scene.list(devices(...Array.from({ length: 200 }, (_, at) => at + 1)));
    const [note = '', ...others] = about(scene);
    expect(note).toMatch(/ 200 devices discovered: web-1 .*, and 190 more$/);
    expect(note.length).toBeLessThan(1024);
    expect(others).toEqual([]);
  });

  it('are none where a device has another name, address or port', async () => {
    const scene = await EndpointsScene.start(example, selecting());
    await scene.list(devices(1));
    notes(scene);
    await scene.list([device('web-1', ['web', 'port-8080'], { name: 'other.example.ts.net' })]);
    expect(scene.status()?.endpoints).toMatchObject([{ name: 'other', address: '100.64.0.1:8080' }]);
    expect(about(scene)).toEqual([]);
  });

  it('report what keeps a device from being an endpoint, and that nothing does any more', async () => {
    const scene = await EndpointsScene.start(example, selecting());
    await scene.list([...devices(1), device('db-1', ['web', 'protocol-tcp'])]);
    expect(about(scene)).toEqual([
      'Normal DevicesDiscovered 1 device discovered: web-1 (100.64.0.1:80)',
      expect.stringMatching(/^Warning PortUnknown devices without a port are left out: db-1/),
    ]);
    await scene.list(devices(1));
    expect(about(scene)).toEqual([expect.stringMatching(/^Normal DevicesDiscovered 1 device matches/)]);
  });

  it('are none while the list of devices is stale, which the MeshTailnet reports', async () => {
    const scene = await EndpointsScene.start(example, selecting());
    await scene.list(devices(1));
    notes(scene);
    await scene.list(devices(1), { isStale: true });
    expect(scene.status()?.discovery?.stale).toBe(true);
    await scene.list(devices(1), { isStale: false });
    expect(scene.status()?.discovery?.stale).toBe(false);
    expect(notes(scene)).toEqual([]);
  });
});

describe('the Events of Ready', () => {
  it('are recorded where it turns False or True, but for the first checks', async () => {
    const scene = await EndpointsScene.start(tailnet, web(1));
    await scene.decide('e0');
    expect(notes(scene)).toEqual([]);
    await scene.decide('e0', 'connection refused');
    expect(notes(scene)).toEqual([
      'Warning EndpointUnhealthy endpoint e0 (100.64.0.1:8080): connection refused',
      'Warning NoHealthyEndpoints no endpoint is healthy: e0: connection refused',
    ]);
    await scene.decide('e0');
    expect(notes(scene)).toEqual([
      'Normal EndpointHealthy endpoint e0 (100.64.0.1:8080)',
      'Normal EndpointsConfigured 1/1 endpoints are healthy or not checked',
    ]);
    await scene.put(web(1, { paused: true }));
    expect(notes(scene)).toMatchObject([expect.stringMatching(/^Normal Paused /)]);
    await scene.put(web(1));
    expect(notes(scene)).toMatchObject([expect.stringMatching(/^Normal EndpointsConfigured /)]);
  });

  it('have the manifest to apply where there is no MeshTailnet', async () => {
    const scene = await EndpointsScene.start(web(1));
    const [event] = scene.events;
    expect(event?.reason).toBe('TailnetNotFound');
    expect(event?.note.length).toBeLessThan(1024);
  });
});
