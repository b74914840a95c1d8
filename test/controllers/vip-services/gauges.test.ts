import { expect, it } from 'vitest';
import { readVipServiceGauges } from '../../../src/controllers/vip-services/gauges.ts';
import { vipServiceMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { publishing } from '../../support/controllers/vip-services/scene.ts';
import { named } from '../../support/declared.ts';
import { meshTailnet } from '../../support/objects.ts';
import { createMemory } from '../../support/store/memory.ts';
import { parseExposition, valueOf } from '../../support/telemetry/exposition.ts';

it('the gauge counts those of each tailnet by state, from the status of MeshEndpoints', async () => {
  const tailnet = named(meshTailnet(), 'example');
  const { read, write, start } = createMemory([], [tailnet, publishing('a', ['web', 'other', 'third'])]);
  await start();
  const object = read.get({ kind: 'MeshEndpoints', namespace: 'default', name: 'a' });
  const vipServices = [
    { name: 'web', status: 'Registered' },
    { name: 'other', status: 'Registered' },
    { name: 'third', status: 'Conflict' },
  ] as const;
  if (object) await write.replaceStatus(object, { vipServices });
  const registry = createRegistry({ metrics: vipServiceMetrics, version: 'test', known: {} });
  readVipServiceGauges(read, registry);
  const families = parseExposition(await registry.text());
  const counts = ['registered', 'pending', 'conflict'].map(state =>
    valueOf(families, 'service_coordinator_services_total', { tailnet: 'example', state }),
  );
  expect(counts).toEqual([2, 0, 1]);
});
