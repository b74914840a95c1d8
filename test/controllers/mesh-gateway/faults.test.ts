import { describe, expect, it } from 'vitest';
import { bindingController } from '../../../src/controllers/mesh-binding/controller.ts';
import { meshGatewayController } from '../../../src/controllers/mesh-gateway/controller.ts';
import { sharedIndexes } from '../../../src/store/indexes.ts';
import { trafficIndexes } from '../../../src/store/traffic/resources.ts';
import { trafficValues } from '../../../src/store/traffic/values.ts';
import { ClusterRun } from '../../support/controllers/faults/cluster-run.ts';
import type { ProcessDeps } from '../../support/controllers/faults/cluster-run.ts';
import { ANY_WAY, differencesAfter, differencesWithLag } from '../../support/controllers/faults/runs.ts';
import type { Scenario } from '../../support/controllers/faults/runs.ts';
import { gatewayObject, named, route } from '../../support/declared.ts';
import { endpoint, meshEndpoints, meshGateway, meshTailnet } from '../../support/objects.ts';

const gateway = (name: string) =>
  gatewayObject('Gateway', `default/${name}`, {
    gatewayClassName: 'mesh',
    listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
  });
const targets = (...names: string[]) => ({
  targetRefs: names.map(name => ({ group: 'gateway.networking.k8s.io', kind: 'Gateway', name })),
});
const web = (...endpoints: object[]) => named(meshEndpoints({ endpoints }), 'default/web');

const OBJECTS = [
  gateway('public'),
  named(meshTailnet(), 'example'),
  named(meshGateway({ dataPath: { mode: 'Direct' } }), 'default/a'),
  named(meshGateway(targets('public', 'other')), 'default/b'),
  web(endpoint()),
  route('HTTPRoute', 'default/web'),
];

/** The controllers that decide about Gateways. */
function process({ tracking, write, events, clock, now, start }: ProcessDeps): undefined {
  const traffic = { dataPath: 'Proxy', clusterEncoding: '', settingsFrom: 'MeshGateway' } as const;
  const values = trafficValues(tracking, traffic);
  start(bindingController({ write, clock, values }));
  start(meshGatewayController({ tracking, values, write, events, clock, now, sweep: undefined }));
}

const indexes = [...trafficIndexes, ...sharedIndexes];

const changes: Scenario<ClusterRun> = {
  start: run => new ClusterRun({ indexes, objects: OBJECTS, process }, run),
  kinds: ['Gateway', 'HTTPRoute', 'MeshBinding', 'MeshEndpoints', 'MeshGateway'],
  changes: [
    cluster => cluster.put(web(endpoint(), endpoint({ name: 'b', meshIP: '100.64.0.2', protocol: 'HTTPS' }))),
    cluster => cluster.put(gateway('other')),
    cluster => cluster.remove('MeshGateway/default/a'),
    cluster => cluster.put(named(meshGateway(targets('other')), 'default/c')),
    cluster => cluster.remove('HTTPRoute/default/web'),
  ],
};

describe('MeshGateways and MeshBindings', () => {
  it('are the same in the end if any one call fails, with and without effect, or is followed by a crash', async () =>
    expect(await differencesAfter(ANY_WAY, changes)).toEqual([]));

  it.each([1, 2, 3, 5])('are the same in the end where the caches are %i changes behind', async lag =>
    expect(await differencesWithLag(lag, changes)).toEqual([]),
  );
});
