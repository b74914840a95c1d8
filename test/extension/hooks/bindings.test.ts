import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_CHECKED_BY_OPERATOR } from '../../../src/api/shares.ts';
import { bindingsIn, MAX_BINDINGS } from '../../../src/extension/hooks/bindings.ts';
import type { Binding } from '../../../src/extension/hooks/bindings.ts';
import { bytesField } from '../../../src/extension/wire.ts';
import { bindingObject, translation } from '../../support/extension/hooks.ts';
import { hostileBytes, seed } from '../../support/extension/messages.ts';

const binding = (revision: string, name: string): Binding => ({
  gateway: { kind: 'Gateway', namespace: 'edge', name },
  revision,
});

function withObject(text: string): Uint8Array {
  return bytesField(1, bytesField(1, bytesField(1, Buffer.from(text))));
}

describe('the bindings of a translation', () => {
  it('are those in its context', () => {
    const objects = [bindingObject('r1'), { kind: 'MeshRoutePolicy' }, bindingObject('r2', 'other')];
    expect(bindingsIn(translation({}, objects))).toEqual([binding('r1', 'web'), binding('r2', 'other')]);
  });

  it.each([
    ['an empty request', new Uint8Array()],
    ['no context', translation({ clusters: [new Uint8Array()] })],
    ['no object', bytesField(1, bytesField(1, new Uint8Array()))],
    ['malformed JSON', withObject('{"kind":')],
    ['a JSON list', withObject('["MeshBinding"]')],
    ['null', withObject('null')],
    ['malformed protobuf', Uint8Array.of(0x0a, 0x7f)],
    ['another kind', withObject(JSON.stringify({ ...bindingObject('r'), kind: 'Other' }))],
    ['another group', withObject(JSON.stringify({ ...bindingObject('r'), apiVersion: 'other.dev/v1' }))],
    ['no metadata', withObject(JSON.stringify({ ...bindingObject('r'), metadata: 7 }))],
    ['no namespace', withObject(JSON.stringify({ ...bindingObject('r'), metadata: {} }))],
    ['no spec', withObject(JSON.stringify({ ...bindingObject('r'), spec: null }))],
    [
      'a revision that is no text',
      withObject(JSON.stringify({ ...bindingObject('r'), spec: { revision: 1, targetRefs: [] } })),
    ],
    ['a name that is too long', withObject(JSON.stringify(bindingObject('r', 'n'.repeat(1024))))],
    [
      'more than a binding can be',
      withObject(JSON.stringify({ ...bindingObject('r'), more: 'x'.repeat(530_000) })),
    ],
  ])('are empty for %s', (_, request) => {
    expect(bindingsIn(request)).toEqual([]);
  });

  it('are read with as many backends that Envoy does not check as they may have', () => {
    const [namespace, name] = ['n'.repeat(63), 'o'.repeat(253)];
    const backends = Array.from({ length: MAX_CHECKED_BY_OPERATOR }, (_, at) => `${namespace}/${name}:${at}`);
    const spec = { revision: 'r1', settings: { checkedByOperator: backends } };
    const full = { ...bindingObject('r1'), spec };
    expect(bindingsIn(translation({}, [full]))).toEqual([binding('r1', 'web')]);
  });

  it('are read from a limited number of objects', () => {
    const objects = Array.from({ length: MAX_BINDINGS + 1 }, (_, at) => bindingObject(`r${at}`));
    expect(bindingsIn(translation({}, objects))).toHaveLength(MAX_BINDINGS);
  });

  it('are read from any bytes without an error', () => {
    const texts = fc.oneof(fc.json(), fc.constant(JSON.stringify(bindingObject('r'))));
    fc.assert(
      fc.property(hostileBytes(texts.map(withObject)), request => {
        for (const { gateway, revision } of bindingsIn(request)) {
          expect([typeof gateway.name, typeof gateway.namespace, typeof revision]).toEqual([
            'string',
            'string',
            'string',
          ]);
        }
      }),
      { seed, numRuns: 1000 },
    );
  });
});
