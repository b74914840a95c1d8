import { describe, expect, it } from 'vitest';
import { named } from '../../support/declared.ts';
import { assigned, confirmed, EndpointsScene } from '../../support/controllers/mesh-endpoints/scene.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../support/objects.ts';

const TARGET = '100.64.0.1:53';
const dns = endpoint({ name: 'dns', protocol: 'UDP', port: 53 });
const tailnet = named(meshTailnet(), 'one');
const web = (...endpoints: object[]) => named(meshEndpoints({ endpoints }), 'default/web');

const ENTRY = {
  name: 'dns',
  status: 'Healthy',
  source: 'Static',
  address: TARGET,
  meshFQDN: 'web.example.ts.net',
  protocol: 'UDP',
  port: 53,
} as const;
const UP = { ...ENTRY, relayPort: 20_000 };
const UNASSIGNED = {
  ...ENTRY,
  status: 'Unhealthy',
  reason: 'RelayPortPending',
  error: 'no relay port is assigned yet',
};
const WITHOUT_PORT = { ...ENTRY, status: 'Unhealthy', reason: 'NoRelayPort' };

/** With a UDP endpoint that has a relay port. */
async function withPort(...endpoints: object[]): Promise<EndpointsScene> {
  const scene = await EndpointsScene.start(tailnet, web(dns, ...endpoints));
  await scene.publish('one', confirmed({ [TARGET]: 20_000 }));
  expect(scene.status()?.endpoints).toContainEqual(UP);
  return scene;
}

describe('status.endpoints of UDP endpoints', () => {
  it('has the relay port once it is confirmed', async () => {
    const scene = await EndpointsScene.start(tailnet, web(dns));
    expect(scene.status()?.endpoints).toEqual([UNASSIGNED]);
    await scene.publish('one', assigned({ [TARGET]: 20_000 }));
    const error = 'the relays of MeshTailnet one do not listen on port 20000 yet';
    expect(scene.status()?.endpoints).toEqual([{ ...WITHOUT_PORT, error }]);
    await scene.publish('one', confirmed({ [TARGET]: 20_000 }));
    expect(scene.status()?.endpoints).toEqual([UP]);
  });

  it('has the reason why a port is not confirmed', async () => {
    const scene = await EndpointsScene.start(tailnet, web(dns));
    const missing = new Map([[TARGET, { text: 'no mesh pod is ready' }]]);
    await scene.publish('one', { ...assigned({ [TARGET]: 20_000 }), missing });
    const entry = { ...WITHOUT_PORT, error: 'no mesh pod is ready' };
    expect(scene.status()?.endpoints).toEqual([entry]);
  });

  it('has the reason where there is no port, cut to what a status may have', async () => {
    const scene = await EndpointsScene.start(tailnet, web(dns));
    const error = `${'x'.repeat(255)}\u{1F600}`;
    await scene.publish('one', { ports: new Map(), missing: new Map([[TARGET, { text: `${error}yz` }]]) });
    expect(scene.status()?.endpoints).toEqual([{ ...WITHOUT_PORT, error }]);
  });

  it('keeps the port while a new leader does not know the ports yet, and has not confirmed them', async () => {
    const scene = await withPort();
    const { writes } = scene;
    await scene.restart();
    await scene.publish('one', assigned({ [TARGET]: 20_000 }));
    await scene.publish('one', confirmed({ [TARGET]: 20_000 }));
    expect([scene.status()?.endpoints, scene.writes]).toEqual([[UP], writes]);
  });

  it('has another port only once that is confirmed', async () => {
    const scene = await withPort();
    await scene.publish('one', assigned({ [TARGET]: 20_001 }));
    expect(scene.status()?.endpoints).toMatchObject([{ status: 'Unhealthy' }]);
    expect(scene.status()?.endpoints?.[0]).not.toHaveProperty('relayPort');
    await scene.publish('one', confirmed({ [TARGET]: 20_001 }));
    expect(scene.status()?.endpoints).toEqual([{ ...ENTRY, relayPort: 20_001 }]);
  });

  it('loses the port with the address, until the new address has one', async () => {
    const scene = await withPort();
    const moved = { ...dns, meshIP: '100.64.0.9' };
    await scene.put(web(moved));
    expect(scene.status()?.endpoints).toEqual([{ ...UNASSIGNED, address: '100.64.0.9:53' }]);
    await scene.publish('one', confirmed({ '100.64.0.9:53': 20_007 }));
    expect(scene.status()?.endpoints).toEqual([{ ...ENTRY, address: '100.64.0.9:53', relayPort: 20_007 }]);
  });

  it('keeps the entry of an endpoint that the published ports do not have yet', async () => {
    const scene = await withPort();
    await scene.publish('one', confirmed({}));
    expect(scene.status()?.endpoints).toEqual([UP]);
  });

  it('has no port where the pool is run by others', async () => {
    const scene = await withPort();
    const pool = { mode: 'External', addresses: ['10.0.0.1:1055'] };
    await scene.put(named(meshTailnet({ pool }), 'one'));
    expect(scene.status()?.endpoints).toEqual([ENTRY]);
  });

  it('has no port where no MeshTailnet has the domain', async () => {
    const scene = await withPort();
    await scene.put(named(meshTailnet({ tailnet: 'other.ts.net' }), 'one'));
    const error = 'there is no MeshTailnet that it may use';
    expect(scene.status()?.endpoints).toEqual([{ ...WITHOUT_PORT, error }]);
  });

  it('has the reason for a new leader too, before that knows the ports', async () => {
    const scene = await EndpointsScene.start(tailnet, web(dns));
    const missing = new Map([[TARGET, { text: 'no relay port is left' }]]);
    await scene.publish('one', { ports: new Map(), missing });
    const { writes } = scene;
    await scene.restart();
    expect([scene.status()?.endpoints?.[0]?.error, scene.writes]).toEqual(['no relay port is left', writes]);
  });

  it('is one text for all spellings of an IPv6 address', async () => {
    const scene = await EndpointsScene.start(tailnet, web({ ...dns, meshIP: 'FD7A:115C:A1E0:0::1' }));
    await scene.publish('one', confirmed({ '[fd7a:115c:a1e0::1]:53': 20_000 }));
    expect(scene.status()?.endpoints).toMatchObject([
      { address: '[fd7a:115c:a1e0::1]:53', relayPort: 20_000 },
    ]);
  });
});

describe('the status of a MeshEndpoints', () => {
  it('stays as it is but for Ready while spec.paused is true', async () => {
    const scene = await withPort();
    const before = scene.status();
    const paused = named(meshEndpoints({ endpoints: [], paused: true }), 'default/web');
    await scene.put(paused);
    await scene.publish('one', confirmed({}));
    const { conditions, ...rest } = scene.status() ?? {};
    expect({ ...rest, conditions: before?.conditions }).toEqual(before);
    expect(conditions).toEqual([
      expect.objectContaining({ type: 'Ready', status: 'False', reason: 'Paused' }),
      ...(before?.conditions ?? []).filter(({ type }) => type !== 'Ready'),
    ]);
    await scene.put(web(endpoint()));
    expect(scene.status()).toMatchObject({
      endpoints: [{ name: 'web', status: 'Healthy' }],
      conditions: [{ type: 'Ready', status: 'True' }, {}, {}],
    });
  });

  it('is not written while nothing changes', async () => {
    const scene = await withPort(endpoint());
    const { writes } = scene;
    await scene.runtime.clock.advance(3_600_000);
    expect(scene.writes).toBe(writes);
  });

  it('is written once for each object where many change at once', async () => {
    const objects = Array.from({ length: 100 }, (_, at) =>
      named(meshEndpoints({ endpoints: [dns] }), `default/dns-${at}`),
    );
    const scene = await EndpointsScene.start(tailnet, ...objects);
    await scene.publish('one', confirmed({ [TARGET]: 20_000 }));
    expect(scene.writes).toBe(200);
    expect(scene.status('dns-99')?.endpoints).toEqual([UP]);
  });
});
