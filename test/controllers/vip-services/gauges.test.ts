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
  const tailnets = [
    named(meshTailnet(), 'example'),
    named(meshTailnet(), 'younger'),
    named(meshTailnet({ tailnet: 'other.ts.net' }), 'other'),
  ];
  const services = publishing('a', ['web', 'other', 'third']);
  const { read, write, start } = createMemory([], [...tailnets, services]);
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
  const countsOf = (tailnet: string) =>
    ['registered', 'pending', 'conflict'].map(state =>
      valueOf(families, 'service_coordinator_services_total', { tailnet, state }),
    );
  expect(countsOf('example')).toEqual([2, 0, 1]);
  expect(countsOf('other')).toEqual([0, 0, 0]);
  // The oldest one of a domain has its services; in memory all are equally old, so that the first by name does.
  expect(countsOf('younger')).toEqual([undefined, undefined, undefined]);
});
