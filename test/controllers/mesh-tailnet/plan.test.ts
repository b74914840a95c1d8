import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../src/api/generated/types.ts';
import type { Input } from '../../../src/controllers/mesh-tailnet/gather.ts';
import { outcomeOf, plan } from '../../../src/controllers/mesh-tailnet/plan.ts';
import { FINALIZER } from '../../../src/controllers/mesh-tailnet/pool/mesh-pods.ts';
import { deviceWith } from '../../support/controllers/mesh-tailnet/mesh-pods.ts';
import { named } from '../../support/declared.ts';
import { meshTailnet } from '../../support/objects.ts';
import { resourceOf } from '../../support/store/resources.ts';

const managed = resourceOf(named(meshTailnet(), 'example')) as Kinds['MeshTailnet'];
const pool = { mode: 'External', addresses: ['127.0.0.1:1055'] };
const external = resourceOf(named(meshTailnet({ pool }), 'example')) as Kinds['MeshTailnet'];
const held = { ...managed, metadata: { ...managed.metadata, finalizers: [FINALIZER] } };
const deletionTimestamp = '2026-01-15T12:00:00Z';
const deleted = { ...managed, metadata: { ...managed.metadata, deletionTimestamp } };

function input(more: Partial<Input>): Input {
  return {
    tailnet: managed,
    olderName: undefined,
    problem: undefined,
    origin: 'Secret mesh-oauth',
    secretVersion: '1',
    trimmed: [],
    now: new Date(0),
    controlServer: { controlURL: 'https://control.example', ca: undefined },
    view: {
      devices: [],
      isStale: false,
      lastSuccess: undefined,
      nextMs: 7000,
      error: undefined,
      missing: new Map<string, number>(),
      expected: new Set<string>(),
      hasServices: undefined,
      token: undefined,
    },
    ...more,
  };
}

const view = { ...input({}).view, devices: [deviceWith({ name: 'web.other.ts.net' })] } as Input['view'];
const problem = { reason: 'ControlURLMissing', text: '' } as const;

const RUN = ['reconcile-pool with control-api'];

describe('the plan of a MeshTailnet', () => {
  it.each<readonly [string, Partial<Input>, readonly string[]]>([
    ['runs its pool', {}, RUN],
    ['runs no pool that is External', { tailnet: external }, []],
    ['removes a pool that it had', { tailnet: { ...external, metadata: held.metadata } }, RUN],
    ['runs no pool while it is deleted without one', { tailnet: deleted }, []],
    ['keeps devices of another tailnet out of its pool', { view }, ['reconcile-pool with cluster-alone']],
    ['closes connections where another has its domain', { olderName: 'older' }, ['close-connections']],
    ['keeps them where a pool is left to remove', { olderName: 'older', tailnet: held }, []],
    ['closes connections without a control API', { problem }, ['close-connections', ...RUN]],
  ])('%s', (_, more, expected) => {
    const actions = plan(input(more)).map(each =>
      each.do === 'reconcile-pool' ? `${each.do} with ${each.with}` : each.do,
    );
    expect(actions).toEqual(expected);
  });
});

describe('a MeshTailnet without a pool is reconciled again', () => {
  it('when devices are to be listed', () => {
    expect(outcomeOf(input({}), undefined, new Date(0))).toEqual({ requeue: 'after', ms: 7000 });
  });

  it.each([
    [2000, 5000],
    [9000, 0],
    [-2000, 7000],
  ])('without the %i ms that have passed since it was observed', (passedMs, ms) => {
    expect(outcomeOf(input({}), undefined, new Date(passedMs))).toEqual({ requeue: 'after', ms });
  });

  it.each([{ olderName: 'older' }, { problem }])('on a change alone with %j', more => {
    expect(outcomeOf(input(more), undefined, new Date(0))).toEqual({ requeue: 'on-change' });
  });
});
