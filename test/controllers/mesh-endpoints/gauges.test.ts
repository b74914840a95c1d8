import { describe, expect, it } from 'vitest';
import type { EndpointStatus } from '../../../src/api/generated/types.ts';
import { readEndpointGauges } from '../../../src/controllers/mesh-endpoints/gauges.ts';
import { withMetadataLabels } from '../../../src/telemetry/endpoint-metrics.ts';
import { endpointMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { named } from '../../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../support/objects.ts';
import { createMemory } from '../../support/store/memory.ts';
import { parseExposition } from '../../support/telemetry/exposition.ts';

type Health = EndpointStatus['status'];

/** A memory with MeshEndpoints, of namespace team unless named, whose endpoints are checked, unless their name begins with `unchecked`. */
async function started(objects: Readonly<Record<string, Readonly<Record<string, Health>>>>) {
  const memory = createMemory([]);
  const registry = createRegistry({ metrics: endpointMetrics, version: 'test' });
  await memory.start();
  await memory.author.put(named(meshTailnet({}), 'example'));
  for (const [place, health] of Object.entries(objects)) {
    const [name = '', namespace = 'team'] = place.split('/').reverse();
    const names = Object.keys(health);
    const endpoints = names.map((each, index) =>
      endpoint({
        name: each,
        port: 1 + index,
        healthCheck: { enabled: !each.startsWith('unchecked') },
      }),
    );
    await memory.author.put(named(meshEndpoints({ endpoints }), `${namespace}/${name}`));
    const object = memory.read.get({ kind: 'MeshEndpoints', namespace, name });
    const entries = names.map(each => ({ name: each, status: health[each] ?? 'Unhealthy', address: '' }));
    if (object) await memory.write.replaceStatus(object, { endpoints: entries });
  }
  const end = readEndpointGauges(memory.read, registry);
  const series = async (name: string) => {
    const family = parseExposition(await registry.text()).get(`mesh_gateway_${name}`);
    return Object.fromEntries(
      (family?.series ?? []).map(({ labels, value }) => [Object.values(labels).join(' '), value]),
    );
  };
  return { memory, end, series };
}

describe('the gauges of endpoints', () => {
  it('are those of the status of each checked endpoint, and totals of all endpoints', async () => {
    const { series } = await started({
      web: { a: 'Healthy', b: 'Unhealthy', 'unchecked-c': 'Healthy' },
      api: { a: 'Healthy' },
    });
    expect(await series('endpoint_healthy')).toEqual({ 'team web a': 1, 'team web b': 0, 'team api a': 1 });
    expect(await series('endpoints')).toEqual({ 'example healthy': 3, 'example unhealthy': 1 });
    expect(await series('endpoint_health_not_shown')).toEqual({ '': 0 });
  });

  it('are at most 1000, always of the same endpoints, and the others are counted', async () => {
    const health = Object.fromEntries(
      Array.from({ length: 600 }, (_, index) => [`e${index}`, 'Healthy' as const]),
    );
    const { series } = await started({ web: health, api: health });
    const names = Object.keys(await series('endpoint_healthy'));
    expect(names).toHaveLength(1000);
    expect(names.filter(name => name.startsWith('team api'))).toHaveLength(600);
    expect(await series('endpoint_health_not_shown')).toEqual({ '': 200 });
    expect(await series('endpoints')).toEqual({ 'example healthy': 1200, 'example unhealthy': 0 });
  });

  it('are shared by namespaces, so that none displaces the endpoints of another', async () => {
    const health = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`e${index}`, 'Healthy' as const]));
    const { memory, series } = await started({
      'a/one': health(1000),
      'b/two': health(900),
      'c/three': health(200),
    });
    const countIn = async (family: string, namespace: string) =>
      Object.keys(await series(family)).filter(name => name.startsWith(`${namespace} `)).length;
    const counts = ['a', 'b', 'c'].map(namespace => countIn('endpoint_healthy', namespace));
    expect(await Promise.all(counts)).toEqual([400, 400, 200]);
    expect(await series('endpoint_health_not_shown')).toEqual({ '': 1100 });

    const tagSelectors = [{ key: 'web', operator: 'Exists' }];
    const names = Array.from({ length: 1001 }, (_, index) => `a/x${index}`);
    for (const name of [...names, 'c/found'])
      await memory.author.put(named(meshEndpoints({ tagSelectors }), name));
    expect([await countIn('discovered_endpoints', 'a'), await countIn('discovered_endpoints', 'c')]).toEqual([
      999, 1,
    ]);
  });

  it('are the number of discovered endpoints of each object with selectors', async () => {
    const { memory, series } = await started({ web: { a: 'Healthy' } });
    const tagSelectors = [{ key: 'web', operator: 'Exists' }];
    for (const name of ['found', 'nothing'])
      await memory.author.put(named(meshEndpoints({ tagSelectors }), `team/${name}`));
    const object = memory.read.get({ kind: 'MeshEndpoints', namespace: 'team', name: 'found' });
    const device = { meshFQDN: 'a.example.ts.net', protocol: 'HTTP' } as const;
    const entry = (name: string, source: 'Static' | 'TagSelector') =>
      ({ name, source, status: 'Healthy', address: '100.64.0.1:80', ...device }) as const;
    const endpoints = [entry('a', 'Static'), entry('b', 'TagSelector'), entry('c', 'TagSelector')];
    if (object)
      await memory.write.replaceStatus(object, { endpoints, discovery: { tailnet: object.spec.tailnet } });
    expect(await series('discovered_endpoints')).toEqual({ 'team found': 2, 'team nothing': 0 });
  });

  it('have the metadata of the endpoint with the keys of the configuration, and no other', async () => {
    const { memory } = await started({});
    const keys = ['region', 'example.com/zone'];
    const registry = createRegistry({ metrics: withMetadataLabels(endpointMetrics, keys), version: 'test' });
    readEndpointGauges(memory.read, registry, keys);
    const metadata = [
      { region: 'eu-west', 'example.com/zone': 'a,b\nc', secret: 'x' },
      { region: 'x'.repeat(1024) },
    ];
    const endpoints = metadata.map((each, index) =>
      endpoint({ name: `e${index}`, port: 1 + index, healthCheck: { enabled: true }, metadata: each }),
    );
    await memory.author.put(named(meshEndpoints({ endpoints }), 'team/web'));
    const family = parseExposition(await registry.text()).get('mesh_gateway_endpoint_healthy');
    expect(family?.series.map(({ labels }) => labels)).toEqual([
      {
        namespace: 'team',
        name: 'web',
        endpoint: 'e0',
        metadata_region: 'eu-west',
        metadata_example_com_zone: 'a b c',
      },
      {
        namespace: 'team',
        name: 'web',
        endpoint: 'e1',
        metadata_region: 'x'.repeat(128),
        metadata_example_com_zone: '',
      },
    ]);
  });

  it('disappear with the object, and once they are no longer read', async () => {
    const { memory, end, series } = await started({ web: { a: 'Healthy' }, api: { a: 'Healthy' } });
    await memory.author.remove({ kind: 'MeshEndpoints', namespace: 'team', name: 'web' });
    expect(await series('endpoint_healthy')).toEqual({ 'team api a': 1 });
    end();
    expect(await series('endpoint_healthy')).toEqual({});
    expect(await series('endpoints')).toEqual({});
  });
});
