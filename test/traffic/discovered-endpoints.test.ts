import { describe, expect, it } from 'vitest';
import type { EndpointStatus, Kinds } from '../../src/api/generated/types.ts';
import { endpointsOf } from '../../src/api/objects/endpoints.ts';
import { caRefsOf } from '../../src/api/trust.ts';
import { sharedIndexes, udpEndpointsByTailnet } from '../../src/store/indexes.ts';
import { trafficIndexes } from '../../src/store/traffic/resources.ts';
import { openGateway, route } from '../support/declared.ts';
import { endpoint } from '../support/objects.ts';
import { createMemory } from '../support/store/memory.ts';
import { derivedFrom } from '../support/store/traffic.ts';
import { resourceOf } from '../support/store/resources.ts';
import { endpointsObject, tailnetObject } from '../support/traffic/objects.ts';
import { resourcesFrom, trafficOf } from '../support/traffic/resolve.ts';

const tagSelectors = [{ key: 'web', operator: 'Exists' }];
const discovery = { tailnet: 'example.ts.net' };
const entry = (name: string, octet: number, fields: Partial<EndpointStatus> = {}): EndpointStatus => ({
  name,
  source: 'TagSelector',
  status: 'Healthy',
  address: `100.64.0.${octet}:8080`,
  meshFQDN: `${name}.example.ts.net`,
  protocol: 'HTTP',
  port: 8080,
  ...fields,
});

/** A MeshEndpoints default/web that has discovered these endpoints. */
const discovering = (endpoints: readonly EndpointStatus[], spec: object = {}, found: object = discovery) =>
  endpointsObject('default/web', [], { tagSelectors, status: { endpoints, discovery: found }, ...spec });
const read = (object: object) => resourceOf(object) as Kinds['MeshEndpoints'];
const namesIn = (object: object) => endpointsOf(read(object)).map(({ name }) => name);

describe('discovered endpoints', () => {
  it('get the traffic that static ones with the fields of the template get', () => {
    const template = { weight: 3, healthCheck: { enabled: true }, tls: { insecureSkipVerify: true } };
    const fields = { protocol: 'HTTPS', ...template } as const;
    const [a, b] = [
      entry('a', 1, { protocol: 'HTTPS' }),
      entry('b', 2, { protocol: 'HTTPS', status: 'Unhealthy' }),
    ];
    const static_ = [a, b].map(({ name, meshFQDN }, at) =>
      endpoint({ name, meshFQDN, meshIP: `100.64.0.${at + 1}`, ...fields }),
    );
    const world = [tailnetObject(), route('HTTPRoute', 'default/web')];
    const listed = endpointsObject('default/web', static_, { status: { endpoints: [a, b] } });
    const found = discovering([a, b], { endpointTemplate: template });
    const trafficTo = (object: object) => {
      const { settings, through } = trafficOf(resourcesFrom([...world, object]));
      return { settings, through };
    };
    expect(trafficTo(found).through.Proxy.assignment.localities[0]?.endpoints).toHaveLength(2);
    expect(trafficTo(found)).toEqual(trafficTo(listed));
  });

  it('come after the static ones, which replace those of the same name or address', () => {
    const endpoints = [
      endpoint({ name: 'z', meshIP: '100.64.0.1' }),
      endpoint({ name: 'b', meshIP: '100.64.0.9' }),
    ];
    const found = [entry('a', 1), entry('b', 2), entry('c', 3)];
    expect(namesIn(discovering(found, { endpoints }))).toEqual(['z', 'b', 'c']);
  });

  it.each([
    [
      'of an object without selectors',
      discovering([entry('a', 1)], { tagSelectors: [], endpoints: [endpoint()] }),
    ],
    [
      'of another tailnet',
      discovering([entry('a', 1)], { endpoints: [endpoint()] }, { tailnet: 'old.ts.net' }),
    ],
    [
      'that an entry lacks fields of',
      discovering([{ name: 'a', source: 'TagSelector', status: 'Healthy' }], { endpoints: [endpoint()] }),
    ],
  ])('are none %s', (_, object) => {
    expect(namesIn(object)).toEqual(['web']);
  });

  it.each([
    ['a metadata service', { address: '169.254.169.254:8080' }],
    ['the machine of Envoy itself', { address: '127.0.0.1:8080' }],
    ['a pod', { address: '10.0.0.7:8080' }],
    ['an address that no device has', { address: '100.100.100.200:8080' }],
    ['the loopback address of IPv6', { address: '[::1]:8080' }],
    ['a name that is no label', { name: '../other' }],
    ['a full name that is none', { meshFQDN: 'localhost' }],
  ])('do not come from an entry that no device could have: %s', (_, written) => {
    const object = discovering([entry('good', 1), { ...entry('bad', 2), ...written }]);
    const resources = resourcesFrom([tailnetObject(), object, route('HTTPRoute', 'default/web')]);
    const { Proxy, Direct } = trafficOf(resources).through;
    for (const { assignment } of [Proxy, Direct]) {
      const dialled = assignment.localities.flatMap(({ endpoints }) => endpoints);
      expect(dialled.map(({ address }) => address)).toEqual(['100.64.0.1']);
    }
  });

  it('have certificates before the first of them exists', () => {
    const object = discovering([], { endpointTemplate: { protocol: 'TLS', tls: { caRef: { name: 'ca' } } } });
    expect(caRefsOf(read(object))).toEqual([{ namespace: 'default', name: 'ca', key: 'ca.crt' }]);
  });

  it('change a revision only where clusters change', async () => {
    const memory = createMemory(
      [...trafficIndexes, ...sharedIndexes],
      [
        ...[tailnetObject(), openGateway('default/public'), route('HTTPRoute', 'default/web')],
        endpointsObject('default/web', [], { tagSelectors }),
      ],
    );
    const { traffic } = derivedFrom(memory.read);
    await memory.start();
    const revisionWith = async (...endpoints: readonly EndpointStatus[]) => {
      const object = memory.read.get({ kind: 'MeshEndpoints', namespace: 'default', name: 'web' });
      if (object) await memory.write.replaceStatus(object, { discovery, endpoints });
      return traffic.revisions.read('Gateway/default/public')?.hash;
    };
    const first = await revisionWith(entry('a', 1));
    expect(await revisionWith(entry('a', 1, { status: 'Unhealthy' }), entry('b', 2))).toBe(first);
    expect(await revisionWith(entry('a', 1, { protocol: 'HTTPS' }))).not.toBe(first);
    expect(await revisionWith(entry('b', 2))).toBe(first);
    await revisionWith(entry('b', 2, { protocol: 'UDP' }));
    expect(memory.read.find(udpEndpointsByTailnet, 'example.ts.net')).toHaveLength(1);
  });
});
