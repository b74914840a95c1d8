import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { endpointsOf } from '../../../../src/api/objects/endpoints.ts';
import type { Fields } from '../../../../src/api/json.ts';
import { validate } from '../../../../src/api/validation/validate.ts';
import { decodeDevices } from '../../../../src/control/decode.ts';
import { discover } from '../../../../src/controllers/mesh-endpoints/discovery/discover.ts';
import { withFound } from '../../../../src/controllers/mesh-endpoints/discovery/found-endpoints.ts';
import { discoveredConditionOf } from '../../../../src/controllers/mesh-endpoints/discovery/status.ts';
import { endpoint, meshEndpoints } from '../../../support/objects.ts';

const seed = Number(process.env['SEED'] ?? 1);

/** What a device, or a control server, may send as any text. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.string({ unit: 'grapheme', maxLength: 300 }),
  fc.constantFrom(
    'web.example.ts.net',
    'WEB',
    'static',
    'x.'.repeat(200),
    'a'.repeat(300),
    '.',
    '-',
    '\u0000',
    '',
  ),
);
const address = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.constantFrom(
    '100.64.0.1',
    '100.100.100.100',
    'fd7a:115c:a1e0::1',
    'fd7a:115c:a1e0::1%eth0',
    '127.0.0.1',
  ),
  text,
);
const tag = fc.oneof(
  fc.constantFrom('tag:port-99999', 'tag:port-0', 'tag:protocol-tcp', 'tag:', 'tag:region'),
  text.map(value => `tag:region-${value}`),
);
const device = fc.record({
  nodeId: text.filter(id => id !== ''),
  ...{ name: text, hostname: text },
  addresses: fc.array(address, { maxLength: 4 }),
  tags: fc.array(tag, { maxLength: 4 }).map(tags => ['tag:web', ...tags]),
  connectedToControl: fc.constant(true),
  expires: fc.constantFrom('', 'never', '2999-01-01T00:00:00Z'),
});

function valid(spec: Fields, status?: Fields) {
  const verdict = validate('MeshEndpoints', { ...meshEndpoints(spec), ...(status && { status }) });
  if (!verdict.valid) throw new Error(JSON.stringify(verdict.faults));
  return verdict.object;
}

describe('devices with any names, addresses and tags', () => {
  it('are endpoints as a user may list them, in a status that an API server takes', () => {
    const tagSelectors = [{ key: 'web', operator: 'Exists' }];
    const endpointTemplate = { metadataFromTags: ['region', 'port'] };
    const spec = { endpoints: [endpoint({ name: 'static' })], tagSelectors, endpointTemplate };
    const object = valid(spec);
    const lists = fc.array(device, { maxLength: 12 });
    fc.assert(
      fc.property(lists, sent => {
        const devices = decodeDevices({ devices: sent }, new Date('2026-01-15T12:00:00Z'));
        const discovered = discover(object.spec, devices, undefined);
        const found = { is: 'listed', tailnet: 'example', discovered, kept: [] } as const;
        const listed = { ...found, devices: devices.length, isStale: false, lastSync: undefined };
        const { status } = withFound(object, listed);
        const condition = {
          ...discoveredConditionOf(object, listed),
          lastTransitionTime: '2026-01-15T12:00:00Z',
        };
        const written = valid(spec, { ...status, conditions: [condition] });
        const endpoints = endpointsOf(written).map(({ metadata: _, ...each }) => each);
        expect(valid({ endpoints }).spec.endpoints).toHaveLength(1 + discovered.endpoints.length);
      }),
      { seed, numRuns: 1000 },
    );
  });
});
