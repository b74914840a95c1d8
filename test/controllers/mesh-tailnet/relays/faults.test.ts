import { describe, expect, it } from 'vitest';
import { EndpointsRun, relayPod } from '../../../support/controllers/faults/endpoints-run.ts';
import { ANY_WAY, differencesAfter, differencesWithLag } from '../../../support/controllers/faults/runs.ts';
import type { Scenario } from '../../../support/controllers/faults/runs.ts';
import { named } from '../../../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../../support/objects.ts';

const dns = (...octets: readonly number[]) => {
  const endpoints = octets.map(octet =>
    endpoint({ name: `dns-${octet}`, meshIP: `100.64.0.${octet}`, port: 53, protocol: 'UDP' }),
  );
  return named(meshEndpoints({ endpoints }), 'default/dns');
};

function start(...given: ConstructorParameters<typeof EndpointsRun>): EndpointsRun {
  const cluster = new EndpointsRun(...given);
  cluster.putWithStatus(relayPod('meshd-example-0', '10.0.0.7'));
  return cluster;
}

const OBJECTS = [named(meshTailnet(), 'example'), dns(1)];

const changes: Scenario<EndpointsRun> = {
  start: run => start(OBJECTS, run),
  kinds: ['MeshEndpoints', 'MeshTailnet', 'Pod'],
  changes: [
    run => run.put(dns(1, 2)),
    run => run.putWithStatus(relayPod('meshd-example-1', '10.0.0.8')),
    run => run.put(dns(3, 2)),
    run => run.put(named(meshTailnet({ allowedNamespaces: { from: 'Selector', selector: {} } }), 'example')),
    run => run.remove('Pod/mesh-system/meshd-example-0'),
    run => run.remove('MeshEndpoints/default/dns'),
    run => run.put(dns(2)),
  ],
};

/** One port for two targets, one after the other. */
const replaced: Scenario<EndpointsRun> = {
  ...changes,
  start: run =>
    start(OBJECTS, run, outside => {
      outside.relayPortRange = { first: 20_000, last: 20_000 };
    }),
  disturbed: calls => [...calls.keys()].filter(index => calls[index]?.includes('ConfigMap')),
  changes: [run => run.put(dns(2)), run => run.put(dns(3))],
};

describe('relay ports', () => {
  it('are the same in the end if any one call fails, with and without effect, or is followed by a crash', async () =>
    expect(await differencesAfter(ANY_WAY, changes)).toEqual([]));

  it('are not given to another target while they drain, also if any one call fails, with and without effect', async () => {
    const ways = ANY_WAY.filter(way => way !== 'is followed by a crash');
    expect(await differencesAfter(ways, replaced)).toEqual([]);
  });

  it.each([1, 2, 3])('are the same in the end where the caches are %i changes behind', async lag =>
    expect(await differencesWithLag(lag, changes)).toEqual([]),
  );
});
