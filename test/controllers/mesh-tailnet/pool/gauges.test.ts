import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../../src/api/generated/types.ts';
import { readPoolGauges } from '../../../../src/controllers/mesh-tailnet/pool/gauges.ts';
import { poolMetrics } from '../../../../src/telemetry/metrics.ts';
import { createRegistry } from '../../../../src/telemetry/registry.ts';
import { named } from '../../../support/declared.ts';
import { createMemory } from '../../../support/store/memory.ts';
import { meshTailnet } from '../../../support/objects.ts';
import { parseExposition } from '../../../support/telemetry/exposition.ts';

type Status = NonNullable<Kinds['MeshTailnet']['status']>;

async function started(statuses: Readonly<Record<string, Status>>) {
  const memory = createMemory([]);
  const registry = createRegistry({ metrics: poolMetrics, version: 'test' });
  await memory.start();
  for (const [name, status] of Object.entries(statuses)) {
    await memory.author.put(named(meshTailnet({}), name));
    const tailnet = memory.read.get({ kind: 'MeshTailnet', namespace: '', name });
    if (tailnet) await memory.write.replaceStatus(tailnet, status);
  }
  const end = readPoolGauges(memory.read, registry);
  const series = async (name: string) => {
    const family = parseExposition(await registry.text()).get(`mesh_gateway_${name}`);
    return Object.fromEntries(
      (family?.series ?? []).map(({ labels, value }) => [Object.values(labels).join(' '), value]),
    );
  };
  return { memory, end, series };
}

describe('the gauges of pools', () => {
  it('are those of the status of each MeshTailnet that has a pool', async () => {
    const { series } = await started({
      one: { pool: { ready: 1, desired: 3 }, devices: { orphaned: 2 } },
      two: { pool: { desired: 2 }, devices: { total: 7 } },
      external: { devices: { total: 7 } },
    });
    expect(await series('pool_members')).toEqual({
      'one ready': 1,
      'one not_ready': 2,
      'two ready': 0,
      'two not_ready': 2,
    });
    expect(await series('orphans')).toEqual({ one: 2 });
  });

  it('have no negative number while a pool scales down', async () => {
    const { series } = await started({ one: { pool: { ready: 3, desired: 1 } } });
    expect(await series('pool_members')).toEqual({ 'one ready': 3, 'one not_ready': 0 });
  });

  it('disappear with the MeshTailnet, and once they are no longer read', async () => {
    const statuses = {
      one: { pool: { ready: 1, desired: 1 }, devices: { orphaned: 0 } },
      two: { pool: { ready: 2, desired: 2 }, devices: { orphaned: 0 } },
    };
    const { memory, end, series } = await started(statuses);
    await memory.author.remove({ kind: 'MeshTailnet', namespace: '', name: 'one' });
    expect(await series('pool_members')).toEqual({ 'two ready': 2, 'two not_ready': 0 });
    expect(await series('orphans')).toEqual({ two: 0 });
    end();
    expect(await series('pool_members')).toEqual({});
  });
});
