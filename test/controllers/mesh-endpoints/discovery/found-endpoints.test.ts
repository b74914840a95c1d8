import { describe, expect, it } from 'vitest';
import type { EndpointStatus, Kinds } from '../../../../src/api/generated/types.ts';
import { endpointsOf } from '../../../../src/api/objects/endpoints.ts';
import { validate } from '../../../../src/api/validation/validate.ts';
import { discover } from '../../../../src/controllers/mesh-endpoints/discovery/discover.ts';
import { withFound } from '../../../../src/controllers/mesh-endpoints/discovery/found-endpoints.ts';
import { device } from '../../../support/controllers/mesh-endpoints/given-devices.ts';
import { endpoint, meshEndpoints } from '../../../support/objects.ts';

/** An object with static endpoints, and with selectors. */
function objectWith(count: number, status?: Kinds['MeshEndpoints']['status']): Kinds['MeshEndpoints'] {
  const endpoints = Array.from({ length: count }, (_, at) =>
    endpoint({ name: `static-${at}`, port: 2000 + at }),
  );
  const tagSelectors = [{ key: 'web', operator: 'Exists' }];
  const verdict = validate('MeshEndpoints', meshEndpoints({ endpoints, tagSelectors }));
  if (!verdict.valid) throw new Error(JSON.stringify(verdict.faults));
  return { ...verdict.object, ...(status && { status }) };
}

const entryOf = (at: number): EndpointStatus => ({
  ...{ name: `a${at}`, source: 'TagSelector', status: 'Healthy', deviceID: `na${at}CNTRL` },
  ...{ address: `100.65.0.${at}:80`, meshFQDN: `a${at}.example.ts.net`, protocol: 'HTTP', port: 80 },
});
const written = { discovery: { tailnet: 'example.ts.net' }, endpoints: [entryOf(1), entryOf(2), entryOf(3)] };
const namesOf = (object: Kinds['MeshEndpoints']) => endpointsOf(object).map(({ name }) => name);

describe('an object with as many endpoints as a status may have', () => {
  it('keeps devices that are in no list only as far as there is room beside static ones', () => {
    const object = objectWith(998, written);
    const discovered = discover(object.spec, [device('z', ['web'])], undefined);
    const lists = { tailnet: 'example', devices: 1, isStale: false, lastSync: undefined };
    const found = withFound(object, { is: 'listed', discovered, kept: written.endpoints, ...lists });
    expect(namesOf(found).slice(998)).toEqual(['a1', 'z']);
  });

  it('has those that were written before static ones were added only as far as there is room', () => {
    expect(namesOf(objectWith(998, written)).slice(998)).toEqual(['a1', 'a2']);
    expect(namesOf(objectWith(1000, written))).toHaveLength(1000);
  });
});
