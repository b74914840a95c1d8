import { describe, expect, it } from 'vitest';
import { EndpointsRun, relayPod } from '../../../support/controllers/faults/endpoints-run.ts';
import { differencesAfter, differencesWithLag } from '../../../support/controllers/faults/runs.ts';
import type { Scenario } from '../../../support/controllers/faults/runs.ts';
import { named } from '../../../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../../support/objects.ts';

const dns = (...octets: readonly number[]) => {
  const endpoints = octets.map(octet =>
    endpoint({ name: `dns-${octet}`, meshIP: `100.64.0.${octet}`, port: 53, protocol: 'UDP' }),
  );
  return named(meshEndpoints({ endpoints }), 'default/dns');
};

const changes: Scenario<EndpointsRun> = {
  start: run => {
    const cluster = new EndpointsRun([named(meshTailnet(), 'example'), dns(1)], run);
    cluster.putWithStatus(relayPod('meshd-example-0', '10.0.0.7'));
    return cluster;
  },
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

describe('relay ports', () => {
  it.each(['fails', 'is refused', 'loses its response', 'is followed by a crash'] as const)(
    'are the same in the end if any one call %s',
    async is => expect(await differencesAfter(is, changes)).toEqual([]),
  );

  it.each([1, 2, 3])('are the same in the end where the caches are %i changes behind', async lag =>
    expect(await differencesWithLag(lag, changes)).toEqual([]),
  );
});
