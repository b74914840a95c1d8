import { describe, expect, it } from 'vitest';
import { gatherCallers } from '../../src/store/callers.ts';
import type { Callers, PodAddresses } from '../../src/store/callers.ts';

function pod(address: string, fields: Partial<PodAddresses> = {}): PodAddresses {
  return {
    uid: address,
    isHostNetwork: false,
    addresses: [address],
    nodeAddresses: ['192.0.2.1'],
    ...fields,
  };
}

/** Callers with two places of Envoys and one of operators; each change is added to `seen`. */
function gathered() {
  const callers = gatherCallers();
  const seen: (Callers | undefined)[] = [];
  const unsubscribe = callers.subscribe(() => void seen.push(callers.current()));
  const [first, second] = [callers.add('envoy'), callers.add('envoy')];
  return { callers, seen, unsubscribe, first, second, operators: callers.add('operator') };
}

describe('the callers of mesh pods', () => {
  it('are not known until the pods of all places are', () => {
    const { callers, seen, first, second, operators } = gathered();
    first([pod('10.0.0.1')]);
    operators([]);
    expect(callers.current()).toBeUndefined();
    second([]);
    expect(callers.current()).toEqual({ addresses: ['10.0.0.1'], nodeAddresses: ['192.0.2.1'] });
    expect(seen).toEqual([callers.current()]);
  });

  it('have each address once, sorted, with those of operators first', () => {
    const { callers, first, second, operators } = gathered();
    first([pod('10.0.0.9'), pod('10.0.0.1', { addresses: ['10.0.0.1', 'fd00::1'] })]);
    second([pod('10.0.0.1', { uid: 'same', nodeAddresses: ['192.0.2.0', '192.0.2.1'] })]);
    operators([pod('10.0.0.5')]);
    expect(callers.current()).toEqual({
      addresses: ['10.0.0.5', '10.0.0.1', '10.0.0.9', 'fd00::1'],
      nodeAddresses: ['192.0.2.0', '192.0.2.1'],
    });
  });

  it('have the nodes of Envoys, but not those of operators', () => {
    const { callers, first, second, operators } = gathered();
    first([]);
    second([]);
    operators([pod('10.0.0.5')]);
    expect(callers.current()).toEqual({ addresses: ['10.0.0.5'], nodeAddresses: [] });
  });

  it('have the address of a pod in the network of its node apart, since other pods have it too', () => {
    const { callers, first, second, operators } = gathered();
    first([pod('192.0.2.1', { isHostNetwork: true })]);
    second([]);
    operators([pod('192.0.2.5', { isHostNetwork: true })]);
    expect(callers.current()).toEqual({ addresses: [], nodeAddresses: ['192.0.2.1', '192.0.2.5'] });
  });

  it('are published only when they change, until the listener unsubscribes', () => {
    const { callers, seen, unsubscribe, first, second, operators } = gathered();
    for (const set of [first, second, operators]) set([]);
    first([pod('10.0.0.1')]);
    second([pod('10.0.0.1', { uid: 'same' })]);
    expect(seen.map(each => each?.addresses)).toEqual([[], ['10.0.0.1']]);
    unsubscribe();
    first([]);
    second([]);
    expect(seen).toHaveLength(2);
    expect(callers.current()?.addresses).toEqual([]);
  });
});
