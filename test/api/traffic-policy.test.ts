import { expect, it } from 'vitest';
import { decode } from '../../src/api/objects/decode.ts';

/** The faults of a BackendTrafficPolicy with this spec. */
function faultsOf(spec: unknown): readonly string[] {
  const decoding = decode({
    apiVersion: 'gateway.envoyproxy.io/v1alpha1',
    kind: 'BackendTrafficPolicy',
    metadata: { name: 'web' },
    spec,
  });
  return decoding.is === 'faulty' ? decoding.faults.map(({ path, message }) => `${path} ${message}`) : [];
}

const ref = { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'web' };

it.each([
  ['without targets', {}, []],
  ['with settings of any form', { targetRefs: [ref], retry: 'often' }, []],
  ['without a spec', undefined, ['spec is required']],
  ['with targets that are not a list', { targetRefs: ref }, ['spec.targetRefs is not a list']],
  [
    'with a target without a name',
    { targetRefs: [{ kind: 'HTTPRoute' }] },
    ['spec.targetRefs[0].name is required: give a text of 1 to 253 characters'],
  ],
  [
    'with an unknown choice of namespaces',
    { targetSelectors: [{ kind: 'HTTPRoute', namespaces: { from: 'Some' } }] },
    ['spec.targetSelectors[0].namespaces.from is not one of All, None, Same, Selector; write Same'],
  ],
  [
    'with an unknown operator',
    { targetSelectors: [{ kind: 'HTTPRoute', matchExpressions: [{ key: 'app', operator: 'Is' }] }] },
    [
      'spec.targetSelectors[0].matchExpressions[0].operator is not one of In, NotIn, Exists, DoesNotExist; write In',
    ],
  ],
])('a BackendTrafficPolicy %s has the faults of its targets', (_, spec, faults) => {
  expect(faultsOf(spec)).toEqual(faults);
});
