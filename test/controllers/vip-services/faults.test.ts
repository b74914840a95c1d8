import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { FORCE_CLEANUP } from '../../../src/api/names.ts';
import { withOwners } from '../../../src/controllers/vip-services/owners.ts';
import type { Owner } from '../../../src/controllers/vip-services/owners.ts';
import {
  ANY_WAY,
  differencesAfter,
  differencesWithLag,
  tellingCalls,
} from '../../support/controllers/faults/runs.ts';
import type { Run, Scenario } from '../../support/controllers/faults/runs.ts';
import { VipServicesRun } from '../../support/controllers/faults/vip-services-run.ts';
import { publishing } from '../../support/controllers/vip-services/scene.ts';
import { named } from '../../support/declared.ts';
import { meshGateway } from '../../support/objects.ts';

const strategy = (value: string) =>
  named(meshGateway({ serviceCoordination: { strategy: value } }), 'default/edge');

/** A minute passes with each change. */
const later = (run: VipServicesRun) => run.put(named(meshGateway(), 'elsewhere/any'));

/** Services are listed, change, and are removed. */
const changes: Scenario<VipServicesRun> = {
  start: run => VipServicesRun.start(run),
  kinds: ['MeshEndpoints', 'MeshGateway', 'MeshTailnet'],
  disturbed: calls => tellingCalls(calls),
  changes: [
    run => run.authenticate(),
    run => run.put(publishing('a', ['web', 'other'])),
    run => run.put(strategy('isolated')),
    run => run.put(publishing('a', ['web'])),
    later,
    later,
    run => run.remove('MeshEndpoints/default/a'),
    later,
    later,
  ],
};

const STALE: Owner = {
  ...{ installation: 'eeeeeeee', cluster: 'gone', object: 'default/web', strategy: 'shared' },
  ...{ ports: ['tcp:443'], tags: ['tag:mesh'], heartbeat: new Date('2026-01-15T11:20:00Z') },
};
const FRESH = { ...STALE, installation: 'ffffffff', heartbeat: new Date('2026-01-15T12:00:00Z') };

/** An installation that does not exist any more has services of its own, and one that it shared. */
function addServices({ state }: VipServicesRun, count = 1): void {
  const add = (name: string, owners: readonly Owner[]) => {
    const host = state.services.all().length + 1;
    const addrs = [`100.96.0.${host}`, `fd7a:115c:a1e0:ff::${host}`];
    const annotations = withOwners({}, owners, false);
    state.services.put(name, { name, addrs, ports: ['tcp:443'], tags: ['tag:mesh'], annotations });
  };
  add('svc:shared', [STALE, FRESH]);
  for (let index = 0; index < count; index++) add(`svc:dead-${index}`, [STALE]);
}

const asking = named(meshGateway(), 'default/edge', { annotations: { [FORCE_CLEANUP]: 'true' } });

/** The services are cleaned up. */
const cleanup: Scenario<VipServicesRun> = {
  start: run => VipServicesRun.start(run, 'of VIP services and MeshGateways'),
  kinds: ['MeshGateway', 'MeshTailnet'],
  disturbed: calls => [...calls.keys()].filter(index => IS_RESULT.test(calls[index] ?? '')),
  changes: [run => addServices(run), run => run.authenticate(), run => run.put(asking), later, later],
};

/** Writes of the result, and the removal of the annotation. */
const IS_RESULT = / MeshGateway edge/;

/** Cleans up 25 services in a run; returns its calls and the result. */
async function cleanUpMany(run: Run) {
  const world = VipServicesRun.start(run, 'of VIP services and MeshGateways');
  addServices(world, 24);
  world.authenticate();
  world.put(asking);
  const calls: string[] = [];
  for (let parts = 0; parts < 3; parts++) {
    await world.settle();
    calls.push(...world.calls.slice(calls.length));
  }
  const gateway = world.end()['MeshGateway/default/edge'] as Kinds['MeshGateway'];
  await world.close();
  return { calls, result: gateway.status?.lastCleanup };
}

describe('the result of a cleanup', () => {
  it('is the same if any one write to the MeshGateway fails, with and without effect, or is followed by a crash', async () =>
    expect(await differencesAfter(ANY_WAY, cleanup)).toEqual([]));

  it('has what an operator removed that crashed between two parts', async () => {
    const { calls, result } = await cleanUpMany({});
    expect(result).toMatchObject({ registrations: 25, services: 24 });
    const writes = [...calls.keys()].filter(index => IS_RESULT.test(calls[index] ?? ''));
    // The first is that of a new MeshGateway.
    const at = (writes.find(index => calls.slice(0, index).some(call => call.startsWith('put'))) ?? 0) + 1;
    const crashed = await cleanUpMany({ disturbance: { at, is: 'is followed by a crash' } });
    expect(crashed.result).toMatchObject({ registrations: 25, services: 24 });
    expect(crashed.result?.message).toMatch(/: (svc:dead-\d+, ){4}svc:dead-\d+ and 19 more$/);
  });
});

describe('VIP services, their states and finalizers', () => {
  it('are the same in the end if any one call fails, with and without effect, or is followed by a crash', async () =>
    expect(await differencesAfter(ANY_WAY, changes)).toEqual([]));

  it('are the same in the end, however late the caches', async () => {
    // Without what takes a minute: time passes only with changes.
    const registered = { ...changes, changes: changes.changes.slice(0, 3) };
    expect(await differencesWithLag(2, registered)).toEqual([]);
  });
});
