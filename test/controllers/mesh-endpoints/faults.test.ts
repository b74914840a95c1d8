import { describe, expect, it } from 'vitest';
import { EndpointsRun } from '../../support/controllers/faults/endpoints-run.ts';
import { ANY_WAY, differencesAfter, differencesWithLag } from '../../support/controllers/faults/runs.ts';
import type { Scenario } from '../../support/controllers/faults/runs.ts';
import { device } from '../../support/controllers/mesh-endpoints/given-devices.ts';
import { gatewayObject, named, route } from '../../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../support/objects.ts';

const gateway = gatewayObject('Gateway', 'default/public', {
  gatewayClassName: 'mesh',
  listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
});
const headersFrom = [{ name: 'Authorization', secretKeyRef: { name: 'auth', key: 'token' } }];
const checked = (name: string, octet: number, healthCheck: object = {}) =>
  endpoint({
    name,
    meshIP: `100.64.0.${octet}`,
    healthCheck: { enabled: true, interval: '5s', ...healthCheck },
  });
const external = endpoint({ name: 'db', externalTarget: 'db.example.com:443' });
const web = (endpoints: readonly object[], spec: object = {}) =>
  named(meshEndpoints({ endpoints, ...spec }), 'default/web');

/** Endpoints are the devices with a tag. */
const found = (spec: object = {}) =>
  named(
    meshEndpoints({ endpoints: undefined, tagSelectors: [{ key: 'web', operator: 'Exists' }], ...spec }),
    'default/found',
  );
const deviceAt = (name: string, octet: number, ...tags: readonly string[]) =>
  device(name, ['web', 'port-8080', ...tags], { addresses: [`100.64.1.${octet}`] });
const [D, E] = [deviceAt('d', 1), deviceAt('e', 2)];

const OBJECTS = [
  gateway,
  named(meshTailnet(), 'example'),
  web([checked('a', 1, { headersFrom }), checked('b', 2), external]),
  found(),
  route('HTTPRoute', 'default/web'),
];

const changes: Scenario<EndpointsRun> = {
  start: run =>
    new EndpointsRun(OBJECTS, run, outside => {
      outside.secrets.set('default/auth', { token: 'one' });
      outside.hosts.set('db.example.com', ['10.1.0.1']);
      outside.list([D, E]);
    }),
  kinds: ['Gateway', 'HTTPRoute', 'MeshEndpoints', 'MeshTailnet'],
  changes: [
    ({ outside }) => {
      outside.broken.set('100.64.0.2', 'connection refused');
      outside.list([{ ...D, isOnline: false }, E, deviceAt('f', 3)]);
    },
    ({ outside }) => {
      outside.secrets.delete('default/auth');
      outside.hosts.set('db.example.com', ['10.1.0.2']);
    },
    run => {
      run.outside.list([D, deviceAt('e', 2, 'region-eu')]);
      run.put(web([checked('b', 3), checked('c', 1)]));
    },
    run =>
      run.put(found({ endpointTemplate: { metadataFromTags: ['region'], healthCheck: { enabled: true } } })),
    run => run.put(route('HTTPRoute', 'default/api')),
    ({ outside }) => {
      outside.broken.delete('100.64.0.2');
      outside.broken.set('100.64.0.1', 'connection refused');
    },
    run => run.remove('MeshTailnet//example'),
    run => run.remove('HTTPRoute/default/web'),
    run => run.put(named(meshTailnet(), 'second')),
    run => run.put(web([checked('b', 3)], { paused: true })),
    run => run.put(web([checked('b', 3), checked('a', 1)])),
  ],
};

describe('the status of a MeshEndpoints', () => {
  it('is the same in the end if any one call fails, with and without effect, or is followed by a crash', async () =>
    expect(await differencesAfter(ANY_WAY, changes)).toEqual([]));

  it.each([1, 2, 3, 5])('is the same in the end where the caches are %i changes behind', async lag =>
    expect(await differencesWithLag(lag, changes)).toEqual([]),
  );
});
