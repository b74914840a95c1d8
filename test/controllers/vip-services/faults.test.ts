import { describe, expect, it } from 'vitest';
import { differencesAfter, differencesWithLag, tellingCalls } from '../../support/controllers/faults/runs.ts';
import type { Scenario } from '../../support/controllers/faults/runs.ts';
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

describe('VIP services, their states and finalizers', () => {
  it.each(['fails', 'loses its response', 'is followed by a crash', 'gets an error response'] as const)(
    'are the same in the end if any one call %s',
    async is => expect(await differencesAfter(is, changes)).toEqual([]),
  );

  it('are the same in the end, however late the caches', async () => {
    // Without what takes a minute: time passes only with changes.
    const registered = { ...changes, changes: changes.changes.slice(0, 3) };
    expect(await differencesWithLag(2, registered)).toEqual([]);
  });
});
