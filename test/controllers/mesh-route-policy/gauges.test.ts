import { expect, it } from 'vitest';
import { readRoutePolicyGauges } from '../../../src/controllers/mesh-route-policy/gauges.ts';
import { routePolicyMetrics } from '../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../src/telemetry/registry.ts';
import { named } from '../../support/declared.ts';
import { meshRoutePolicy } from '../../support/objects.ts';
import { createMemory } from '../../support/store/memory.ts';
import { parseExposition, valueOf } from '../../support/telemetry/exposition.ts';

it('the gauge counts MeshRoutePolicies by the condition Accepted of their first ancestor, if they have one', async () => {
  const { read, write, start } = createMemory(
    [],
    ['a', 'b'].map(name => named(meshRoutePolicy(), `default/${name}`)),
  );
  await start();
  const object = read.get({ kind: 'MeshRoutePolicy', namespace: 'default', name: 'a' });
  const condition = { type: 'Accepted', status: 'False', reason: 'Conflicted', message: '' } as const;
  const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
  const ancestorRef = { name: 'public' };
  if (object)
    await write.replaceStatus(object, { ancestors: [{ ancestorRef, controllerName: 'x', conditions }] });
  const registry = createRegistry({ metrics: routePolicyMetrics, version: 'test', known: {} });
  readRoutePolicyGauges(read, registry);
  const families = parseExposition(await registry.text());
  const counts = ['true', 'false', 'unknown'].map(accepted =>
    valueOf(families, 'mesh_gateway_meshroutepolicies', { accepted }),
  );
  expect(counts).toEqual([0, 1, 1]);
});
