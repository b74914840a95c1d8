import { describe, expect, it } from 'vitest';
import { relaysIn } from '../../src/traffic/endpoints/relays.ts';
import { resourceOf } from '../support/store/resources.ts';
import { sliceObject } from '../support/traffic/objects.ts';

const READY = { ready: true, serving: true, terminating: false };
const UNREADY = { ready: false, serving: false, terminating: false };
const TERMINATING = { ready: false, serving: true, terminating: true };

function relaysOf(...slices: readonly object[]): readonly string[] {
  const decoded = slices.map(resourceOf).filter(each => each.kind === 'EndpointSlice');
  return relaysIn(decoded).map(({ address, isDraining }) => (isDraining ? `${address} draining` : address));
}

function slice(name: string, endpoints: readonly object[], more: object = {}): object {
  return sliceObject('mesh-relay-main', endpoints as [], { name, ports: null, ...more });
}

describe('the relays in EndpointSlices', () => {
  it('are the pods, and those that terminate or are not ready drain', () => {
    const endpoints = [
      { addresses: ['10.0.0.3'], conditions: TERMINATING },
      { addresses: ['10.0.0.2'], conditions: UNREADY },
      { addresses: ['10.0.0.1'], conditions: READY },
    ];
    expect(relaysOf(slice('a', endpoints))).toEqual(['10.0.0.1', '10.0.0.2 draining', '10.0.0.3 draining']);
  });

  it('do not depend on the order of the slices, and a pod in two of them is ready if it is in one', () => {
    const one = slice('a', [{ addresses: ['10.0.0.1'], conditions: READY }]);
    const other = slice('b', [
      { addresses: ['10.0.0.1'], conditions: UNREADY },
      { addresses: ['10.0.0.0'], conditions: READY },
    ]);
    expect(relaysOf(one, other)).toEqual(['10.0.0.0', '10.0.0.1']);
    expect(relaysOf(other, one)).toEqual(['10.0.0.0', '10.0.0.1']);
  });

  it('have IP addresses of both families', () => {
    const six = slice('six', [{ addresses: ['fd00::1'], conditions: READY }], { addressType: 'IPv6' });
    const names = slice('names', [{ addresses: ['pod.example.com'] }], { addressType: 'FQDN' });
    expect(relaysOf(six, names)).toEqual(['fd00::1']);
    expect(relaysOf(names)).toEqual([]);
  });
});
