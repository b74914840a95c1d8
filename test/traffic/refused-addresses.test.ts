import { describe, expect, it } from 'vitest';
import { createGuard } from '../../src/traffic/address-guard.ts';
import { endpoint } from '../support/objects.ts';
import { reportedIn, resourcesFrom, trafficOf } from '../support/traffic/resolve.ts';
import type { Traffic } from '../support/traffic/resolve.ts';
import {
  backend,
  endpointsObject,
  managedTailnet,
  relaysObject,
  routeObject,
  tailnetObject,
} from '../support/traffic/objects.ts';

type Fields = Readonly<Record<string, unknown>>;

const guard = createGuard({ allow: [], refuse: ['100.88.0.0/16'], apiServer: ['fd7a:115c:a1e0::1'] });

/** An endpoint that may get traffic, and one that may not. */
const endpointsWith = (meshIP: string, fields: Fields = {}) => [
  endpoint({ name: 'good', meshIP: '100.64.0.1', ...fields }),
  endpoint({ name: 'bad', meshIP, meshFQDN: 'bad.example.ts.net', ...fields }),
];

function addressesOf({ assignment }: Traffic['through']['Proxy']): readonly string[] {
  return assignment.localities.flatMap(({ endpoints }) => endpoints.map(({ address }) => address));
}

const WHY = {
  'fd7a:115c:a1e0:0000:0000:0000:0000:0001': 'an address of the API server',
  'fd7a:115c:a1e0::1': 'an address of the API server',
  '100.88.3.4': 'in 100.88.0.0/16 of REFUSED_ADDRESSES',
} as const;

const refusal = (meshIP: keyof typeof WHY) => [
  {
    reason: 'AddressRefused',
    object: 'MeshEndpoints/default/web',
    endpoint: 'bad',
    message: `spec.rules[0].backendRefs[0]: endpoint bad of MeshEndpoints default/web has an address that must get no traffic: meshIP ${meshIP} is ${WHY[meshIP]}: name a device of the tailnet`,
  },
];

describe('an endpoint whose address must get no traffic', () => {
  it.each(Object.keys(WHY) as (keyof typeof WHY)[])('is withheld from Envoy on any data path: %s', meshIP => {
    const route = routeObject('HTTPRoute', 'web', [backend('web')]);
    const objects = [tailnetObject(), endpointsObject('web', endpointsWith(meshIP)), route];
    const { through, settings } = trafficOf(resourcesFrom(objects, guard));
    for (const path of [through.Proxy, through.Direct]) {
      expect(addressesOf(path)).toEqual(['100.64.0.1']);
      expect(reportedIn(path.unused)).toEqual(refusal(meshIP));
    }
    const open = trafficOf(resourcesFrom(objects));
    expect(addressesOf(open.through.Direct)).toEqual(['100.64.0.1', meshIP]);
    expect(settings).toEqual(open.settings);
  });

  it.each(Object.keys(WHY) as (keyof typeof WHY)[])('gets no datagrams through relays: %s', meshIP => {
    const text = meshIP.includes(':') ? '[fd7a:115c:a1e0::1]' : meshIP;
    const entries = [
      { name: 'good', status: 'Healthy', address: '100.64.0.1:8080', relayPort: 20_001 },
      { name: 'bad', status: 'Healthy', address: `${text}:8080`, relayPort: 20_002 },
    ];
    const object = endpointsObject('web', endpointsWith(meshIP, { protocol: 'UDP' }), {
      status: { endpoints: entries },
    });
    const relays = relaysObject('main', { '10.1.0.1': 'ready' });
    const objects = [managedTailnet(), object, relays, routeObject('UDPRoute', 'web', [backend('web')])];
    const { through } = trafficOf(resourcesFrom(objects, guard), 'udproute/default/web/rule/-1');
    const ports = through.Proxy.assignment.localities.flatMap(({ endpoints }) =>
      endpoints.map(({ port }) => port),
    );
    expect(ports).toEqual([20_001]);
    expect(reportedIn(through.Proxy.unused)).toEqual(refusal(meshIP));
    expect(addressesOf(through.Direct)).toEqual(['100.64.0.1']);
  });

  it('keeps its externalTarget, to which Envoy connects in place of meshIP', () => {
    const externalTarget = 'db.example.com:5432';
    const object = endpointsObject('web', [endpoint({ meshIP: '100.88.0.1', externalTarget })], {
      status: {
        endpoints: [{ name: 'web', status: 'Healthy', externalTarget, resolvedAddresses: ['1.1.1.1'] }],
      },
    });
    const route = routeObject('HTTPRoute', 'web', [backend('web')]);
    const { through } = trafficOf(resourcesFrom([tailnetObject(), object, route], guard));
    expect(addressesOf(through.Proxy)).toEqual(['1.1.1.1']);
    expect(through.Proxy.unused).toEqual([]);
  });
});
