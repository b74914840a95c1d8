import { expect, it } from 'vitest';
import type { VipService } from '../../../src/control/control.ts';
import { decide } from '../../../src/controllers/vip-services/decision.ts';
import type { Claim, Context } from '../../../src/controllers/vip-services/decision.ts';
import { ownersOf } from '../../../src/controllers/vip-services/owners.ts';
import {
  CLAIM,
  CONTEXT,
  OURS,
  ago,
  other,
  owner,
  seenOnce,
  service,
  third,
} from '../../support/controllers/vip-services/owned.ts';

type Row = readonly [
  what: string,
  service: VipService | undefined,
  claim: Partial<Claim>,
  context: Partial<Context>,
  action: string,
  state: string,
];

const ROWS: readonly Row[] = [
  [
    'is shared with another of our objects, which had its name',
    service([other({ shareWith: [`${OURS}/payments`] }), owner({ object: 'payments/web' })]),
    {},
    {},
    'put released',
    'Conflict NotShared',
  ],
  [
    'is shared with this object and with another that is ours, which had its name',
    service([other(), owner({ object: 'payments/web' })]),
    {},
    {},
    'put updated',
    'Pending Registering',
  ],
  [
    'is ours first, by another object, which had its name',
    service([owner({ object: 'payments/web' }), other({ shareWith: [] })]),
    {},
    {},
    'put updated',
    'Pending Registering',
  ],
  [
    'was being removed by ours while another took it, which does not share it',
    service([owner({ leaving: ago(6) }), other({ shareWith: [] })]),
    {},
    {},
    'put released',
    'Conflict NotShared',
  ],
  [
    'was adopted by another object, which had its name, and is not in the list of the MeshTailnet',
    service([owner({ object: 'payments/web' })], ['tcp:443'], true),
    { mayCreate: false, notAdoptable: 'add "web"' },
    {},
    'put released',
    'Conflict NotAdoptable',
  ],
  [
    'was deleted, and had another owner a short time ago',
    undefined,
    {},
    { seen: seenOnce(other()) },
    'nothing',
    'Pending BeingRemoved',
  ],
  [
    'was deleted, and had another owner a short time ago, which had been away for long',
    undefined,
    {},
    { seen: seenOnce(other({ heartbeat: ago(31) })) },
    'put created',
    'Pending Registering',
  ],
  [
    'has lost all of its owners a short time ago',
    service([]),
    {},
    { seen: seenOnce(other()) },
    'nothing',
    'Pending BeingRemoved',
  ],
  [
    'was deleted, and had ours beside another owner',
    undefined,
    {},
    { seen: seenOnce(other(), owner()) },
    'put created',
    'Pending Registering',
  ],
  [
    'has lost our entry beside one that does not share it',
    service([third({ shareWith: [] })]),
    {},
    { seen: seenOnce(owner(), third()) },
    'put joined',
    'Pending Registering',
  ],
  [
    'has lost our entry beside an isolated one',
    service([third({ strategy: 'isolated' })]),
    {},
    { seen: seenOnce(owner()) },
    'nothing',
    'Conflict OwnedByOther',
  ],
  [
    'has lost the entry of another of our objects',
    service([third({ shareWith: [] })]),
    {},
    { seen: seenOnce(owner({ object: 'payments/web' })) },
    'nothing',
    'Conflict NotShared',
  ],
];

it.each(ROWS)('a VIP service that %s', (_, current, claim, context, action, state) => {
  const decided = decide(current, { ...CLAIM, ...claim }, { ...CONTEXT, ...context });
  const { do: what } = decided.action;
  expect(decided.action.do === 'put' ? `${what} ${decided.action.result}` : what).toBe(action);
  expect(decided.state && `${decided.state.status} ${decided.state.reason}`).toBe(state);
});

it.each([
  ['as the first, if it was that', [owner(), third()], [OURS, 'eeeeeeee']],
  ['behind the others otherwise', [third(), owner()], ['eeeeeeee', OURS]],
] as const)('an entry that was lost is written again %s', (_, seen, expected) => {
  const current = service([third({ shareWith: [] })]);
  const { action } = decide(current, CLAIM, { ...CONTEXT, seen: seenOnce(...seen) });
  const { fields } = action.do === 'put' ? action : { fields: {} };
  expect(ownersOf({ ...current, ...fields }).map(({ installation }) => installation)).toEqual(expected);
});
