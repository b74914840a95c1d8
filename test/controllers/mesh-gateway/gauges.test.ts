import { expect, it } from 'vitest';
import { readMeshGatewayGauges } from '../../../src/controllers/mesh-gateway/gauges.ts';
import { meshGatewayMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { named } from '../../support/declared.ts';
import { meshGateway } from '../../support/objects.ts';
import { createMemory } from '../../support/store/memory.ts';
import { parseExposition, valueOf } from '../../support/telemetry/exposition.ts';

it('the gauge counts MeshGateways by the condition Accepted, which new ones do not have yet', async () => {
  const { read, write, start } = createMemory(
    [],
    ['a', 'b'].map(name => named(meshGateway(), `default/${name}`)),
  );
  await start();
  const object = read.get({ kind: 'MeshGateway', namespace: 'default', name: 'a' });
  const condition = { type: 'Accepted', status: 'False', reason: 'Conflicted', message: '' } as const;
  const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
  if (object) await write.replaceStatus(object, { conditions });
  const registry = createRegistry({ metrics: meshGatewayMetrics, version: 'test', known: {} });
  readMeshGatewayGauges(read, registry);
  const families = parseExposition(await registry.text());
  const counts = ['true', 'false', 'unknown'].map(accepted =>
    valueOf(families, 'mesh_gateway_meshgateways', { accepted }),
  );
  expect(counts).toEqual([0, 1, 1]);
});
