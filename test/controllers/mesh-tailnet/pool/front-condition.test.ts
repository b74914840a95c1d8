import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../../src/api/generated/types.ts';
import { FRONT, frontConditionOf } from '../../../../src/controllers/mesh-tailnet/pool/front-condition.ts';
import type { FrontState } from '../../../../src/controllers/mesh-tailnet/pool/front-condition.ts';
import { named } from '../../../support/declared.ts';
import { meshTailnet } from '../../../support/objects.ts';
import { resourceOf } from '../../../support/store/resources.ts';

const STATE: FrontState = {
  isOn: true,
  areCallersKnown: true,
  cut: [],
  omittedCallers: 0,
  nodeAddresses: ['192.0.2.1', '192.0.2.2'],
};

const tailnetWith = (pool: object = {}) =>
  resourceOf(named(meshTailnet({ pool }), 'home')) as Kinds['MeshTailnet'];

describe('the condition FrontReady', () => {
  it.each<[string, Partial<FrontState>, readonly string[], string, string]>([
    ['is True while the lists are complete', {}, [], 'True/FrontReady', 'serves Envoys and operators alone'],
    ['is True where a stranger is refused', {}, ['10.0.0.9'], 'True/FrontReady', 'toward declared endpoints'],
    [
      'names a node whose address is refused',
      {},
      ['192.0.2.1'],
      'False/NodeAddressRefused',
      'add it to spec.pool.allowedCallers',
    ],
    [
      'names several nodes',
      {},
      ['192.0.2.1', '192.0.2.2'],
      'False/NodeAddressRefused',
      '192.0.2.1, 192.0.2.2, the address',
    ],
    [
      'is False while callers are not known',
      { areCallersKnown: false },
      [],
      'False/CallersUnknown',
      'envoyGateway.proxyNamespaces',
    ],
    [
      'counts the Envoys that the list lacks, before namespaces beyond their share',
      { omittedCallers: 12, cut: ['shop'] },
      [],
      'False/TooManyCallers',
      'lacks 12 addresses of Envoys',
    ],
    [
      'names the namespaces beyond their share',
      { cut: ['shop', 'blog'] },
      [],
      'False/TooManyDestinations',
      'lack endpoints of shop, blog',
    ],
    [
      'names a few of many namespaces',
      { cut: Array.from({ length: 9 }, (_, n) => `n${n}`) },
      [],
      'False/TooManyDestinations',
      'n4 and 4 more',
    ],
    [
      'is True where policies are enforced',
      { isOn: false },
      ['192.0.2.1'],
      'True/Open',
      'since NetworkPolicies are enforced',
    ],
  ])('%s', (_what, state, refused, expected, text) => {
    const { status, reason, message } =
      frontConditionOf(tailnetWith(), { ...STATE, ...state }, refused) ?? {};
    expect(`${status}/${reason}`).toBe(expected);
    expect(message).toContain(text);
  });

  it('names the field that opens the proxy', () => {
    const off = frontConditionOf(tailnetWith({ front: 'Off' }), { ...STATE, isOn: false }, []);
    expect(off?.message).toContain('since spec.pool.front is Off');
  });

  it('stays as it was until the lists are made, and is absent before', () => {
    const tailnet = tailnetWith();
    expect(frontConditionOf(tailnet, undefined, [])).toBeUndefined();
    const before = { type: FRONT, status: 'False', reason: 'CallersUnknown', message: 'of before' } as const;
    const condition = { ...before, lastTransitionTime: '2026-01-15T12:00:00Z' };
    expect(
      frontConditionOf({ ...tailnet, status: { conditions: [condition] } }, undefined, []),
    ).toMatchObject(before);
  });
});
