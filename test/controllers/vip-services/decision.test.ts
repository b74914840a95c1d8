import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../src/api/problem.ts';
import type { VipService } from '../../../src/control/control.ts';
import { decide } from '../../../src/controllers/vip-services/decision.ts';
import type { Claim, Context } from '../../../src/controllers/vip-services/decision.ts';
import { ownersOf } from '../../../src/controllers/vip-services/owners.ts';
import {
  CLAIM,
  CONTEXT,
  OURS,
  ago,
  beforeSharing,
  other,
  owner,
  service,
  third,
} from '../../support/controllers/vip-services/owned.ts';

const others = (count: number) =>
  Array.from({ length: count }, (_, index) => other({ installation: String(index).padStart(8, '0') }));

function withVendor(given: VipService): VipService {
  return { ...given, annotations: { ...given.annotations, 'tailscale.com/owner-references': '{}' } };
}

const FOREIGN: VipService = { ...service([]), annotations: {}, fields: { name: 'svc:web' } };

type Row = readonly [
  what: string,
  service: VipService | undefined,
  claim: Partial<Claim> | undefined,
  context: Partial<Context>,
  action: string,
  state: string | undefined,
];

const ROWS: readonly Row[] = [
  ['does not exist', undefined, {}, {}, 'put created', 'Pending Registering'],
  [
    'does not exist, and may not be created',
    undefined,
    { mayCreate: false },
    {},
    'nothing',
    'Pending NotFound',
  ],
  ['is of others', FOREIGN, {}, {}, 'nothing', 'Conflict NotOwned'],
  [
    'is of others, and to be adopted',
    FOREIGN,
    { mayCreate: false },
    {},
    'put adopted',
    'Pending Registering',
  ],
  [
    'is of others, and not in the list of the MeshTailnet',
    FOREIGN,
    { mayCreate: false, notAdoptable: 'add "web"' },
    {},
    'nothing',
    'Conflict NotAdoptable',
  ],
  [
    'was adopted by another that shares it, and is not in the list of the MeshTailnet',
    service([other()], ['tcp:443'], true),
    { mayCreate: false, notAdoptable: 'add "web"' },
    {},
    'nothing',
    'Conflict NotAdoptable',
  ],
  [
    'was adopted before there was a list',
    service([owner()], ['tcp:443'], true),
    { mayCreate: false, notAdoptable: 'add "web"' },
    {},
    'nothing',
    'Registered NotServed',
  ],
  [
    'is adopted without the port',
    FOREIGN,
    { mayCreate: false, port: 80 },
    {},
    'nothing',
    'Failed PortMissing',
  ],
  [
    'is of others that validate no port, and to be adopted',
    { ...FOREIGN, ports: ['do-not-validate'] },
    { mayCreate: false },
    {},
    'put adopted',
    'Pending Registering',
  ],
  [
    'is of others, and to be adopted once something may be changed',
    FOREIGN,
    { mayCreate: false, kept: 'the object is paused' },
    {},
    'nothing',
    'Conflict NotOwned',
  ],
  [
    'has owners that cannot be read',
    service('{"owners":1}'),
    { mayCreate: false },
    {},
    'nothing',
    'Conflict NotOwned',
  ],
  ['is ours', service([owner()]), {}, {}, 'nothing', 'Registered NotServed'],
  [
    'is ours, with a heartbeat that is due',
    service([owner({ heartbeat: ago(5) })]),
    {},
    {},
    'put renewed',
    'Registered NotServed',
  ],
  [
    'is ours, with a heartbeat by a clock that was ahead',
    service([owner({ heartbeat: ago(-10) })]),
    {},
    {},
    'put renewed',
    'Registered NotServed',
  ],
  [
    'is ours and adopted, with a heartbeat that is due, and has lost its port',
    service([owner({ heartbeat: ago(5) })], ['tcp:80'], true),
    {},
    {},
    'put renewed',
    'Failed PortMissing',
  ],
  [
    'is ours and isolated, and has another owner',
    service([owner({ strategy: 'isolated' }), other()]),
    { strategy: 'isolated' },
    {},
    'nothing',
    'Conflict OwnedByOther',
  ],
  [
    'is isolated for an owner whose heartbeat is far in the future, and which is away',
    service([other({ strategy: 'isolated', heartbeat: ago(-11) })]),
    {},
    {},
    'put joined',
    'Pending Registering',
  ],
  [
    'is isolated for one whose heartbeat is far in the future, and which is online',
    service([other({ strategy: 'isolated', heartbeat: ago(-11) })]),
    {},
    { isOnline: () => true },
    'nothing',
    'Conflict OwnedByOther',
  ],
  ['has as many owners as it may', service(others(64)), {}, {}, 'nothing', 'Conflict TooManyOwners'],
  ['has more owners than it may', service(others(65)), {}, {}, 'nothing', 'Conflict NotOwned'],
  [
    'has more text of owners than it may',
    service([other({ cluster: 'x'.repeat(16_384) })]),
    {},
    {},
    'nothing',
    'Conflict NotOwned',
  ],
  [
    "is of the vendor's operator, whatever else it has",
    withVendor(service([owner()])),
    { mayCreate: false },
    {},
    'nothing',
    'Conflict NotOwned',
  ],
  ['is ours, with another port', service([owner()]), { port: 80 }, {}, 'put updated', 'Pending Registering'],
  [
    'is ours, while nothing is changed',
    service([owner()]),
    { port: 80, kept: 'the object is paused' },
    {},
    'nothing',
    'Registered NotServed',
  ],
  [
    'is ours and was to be removed',
    service([owner({ leaving: ago(1) })]),
    {},
    {},
    'put updated',
    'Pending Registering',
  ],
  [
    'is of another installation that shares it',
    service([other()]),
    {},
    {},
    'put joined',
    'Pending Registering',
  ],
  [
    'is of another installation that shares it with the namespace',
    service([other({ shareWith: [`${OURS}/default`] })]),
    {},
    {},
    'put joined',
    'Pending Registering',
  ],
  [
    'is of another installation that trusts ours with the same object',
    service([other({ shareWith: [`${OURS}/default/web`] })]),
    {},
    {},
    'put joined',
    'Pending Registering',
  ],
  [
    'is of another installation that shares it with none',
    service([other({ shareWith: [] })]),
    {},
    {},
    'nothing',
    'Conflict NotShared',
  ],
  [
    'is of another installation that shares it with others',
    service([other({ shareWith: ['eeeeeeee', `${OURS}/payments`, `${OURS}/default/other`, 'default'] })]),
    {},
    {},
    'nothing',
    'Conflict NotShared',
  ],
  [
    'is of an installation of an earlier version, which cannot share it',
    service([beforeSharing('ffffffff')]),
    {},
    {},
    'nothing',
    'Conflict NotShared',
  ],
  [
    'is shared by one that was only admitted by its first owner',
    service([third({ shareWith: [] }), other()]),
    {},
    {},
    'nothing',
    'Conflict NotShared',
  ],
  [
    'is of an isolated installation, whatever it shares, that is away for as long as can be configured',
    service([other({ strategy: 'isolated', heartbeat: ago(24 * 60) })]),
    { staleMs: 1_800_000 },
    {},
    'nothing',
    'Conflict OwnedByOther',
  ],
  [
    'is of an isolated installation that is away for longer',
    service([other({ strategy: 'isolated', heartbeat: ago(24 * 60 + 1) })]),
    {},
    {},
    'put joined',
    'Pending Registering',
  ],
  [
    'is shared with an installation of an earlier version, which was not asked to',
    service([owner(), beforeSharing('ffffffff')]),
    {},
    {},
    'nothing',
    'Registered NotServed',
  ],
  [
    'is ours, of a version that shared with all',
    service([beforeSharing(OURS)]),
    {},
    {},
    'put updated',
    'Pending Registering',
  ],
  [
    'is of another installation, with strategy isolated',
    service([other()]),
    { strategy: 'isolated' },
    {},
    'nothing',
    'Conflict OwnedByOther',
  ],
  [
    'is of an isolated installation',
    service([other({ strategy: 'isolated' })]),
    {},
    {},
    'nothing',
    'Conflict OwnedByOther',
  ],
  [
    'is being removed by another',
    service([other({ leaving: ago(1) })]),
    {},
    {},
    'nothing',
    'Pending BeingRemoved',
  ],
  [
    'is being removed for long',
    service([other({ leaving: ago(1) })]),
    {},
    { leavingForMs: 300_000 },
    'put joined',
    'Pending Registering',
  ],
  [
    'has a stale owner',
    service([owner(), other({ heartbeat: ago(31) })]),
    {},
    {},
    'put updated',
    'Registered NotServed',
  ],
  [
    'has an owner that has written nothing for half an hour, and no longer',
    service([owner(), other({ heartbeat: ago(30) })]),
    {},
    {},
    'nothing',
    'Registered NotServed',
  ],
  [
    'has an owner that is away, and online mesh pods',
    service([owner(), other({ heartbeat: ago(31) })]),
    {},
    { isOnline: () => true },
    'nothing',
    'Registered NotServed',
  ],
  ['is of others, and not claimed', FOREIGN, undefined, {}, 'nothing', undefined],
  ['is of another installation, and not claimed', service([other()]), undefined, {}, 'nothing', undefined],
  ['is shared, and not claimed', service([owner(), other()]), undefined, {}, 'put released', undefined],
  [
    'is adopted, and not claimed',
    service([owner()], ['tcp:443'], true),
    undefined,
    {},
    'put released',
    undefined,
  ],
  ['is ours, and not claimed', service([owner()]), undefined, {}, 'put updated', undefined],
  [
    'is ours, and marked a moment ago',
    service([owner({ leaving: ago(0.5) })]),
    undefined,
    {},
    'nothing',
    undefined,
  ],
  [
    'is ours, and was marked by a clock that was ahead',
    service([owner({ leaving: ago(-10) })]),
    undefined,
    {},
    'put updated',
    undefined,
  ],
  [
    'is ours, and was marked a minute ago',
    service([owner({ leaving: ago(1) })]),
    undefined,
    {},
    'delete',
    undefined,
  ],
];

type Written = readonly [
  what: string,
  service: VipService,
  claim: Partial<Claim> | undefined,
  context: Partial<Context>,
  owners: string,
  ports: string,
  tags: string,
];

const WRITTEN: readonly Written[] = [
  [
    'is joined has what both want',
    service([other({ ports: ['tcp:80'], tags: ['tag:b'] })], ['tcp:80']),
    ...([{}, {}, 'there, here', 'tcp:443, tcp:80', 'tag:b, tag:mesh'] as const),
  ],
  [
    'is joined has not what one wants that is removing it',
    service([other({ leaving: ago(1), ports: ['tcp:80'] }), third({ shareWith: [OURS] })]),
    ...([{}, {}, 'there (leaving), elsewhere, here', 'tcp:443', 'tag:mesh'] as const),
  ],
  [
    'is taken over has no owner that would delete it later',
    service([other({ leaving: ago(1) })]),
    ...([{}, { leavingForMs: 300_000 }, 'here', 'tcp:443', 'tag:mesh'] as const),
  ],
  [
    'was adopted keeps what its creator gave it while it is joined',
    service([other({ tags: ['tag:b'] })], ['tcp:22', 'tcp:443'], true),
    ...([{}, {}, 'there, here', 'tcp:22, tcp:443', 'tag:mesh'] as const),
  ],
  [
    'is released has what the others want',
    service([owner({ ports: ['tcp:80'] }), other()], ['tcp:443', 'tcp:80']),
    ...([undefined, {}, 'there', 'tcp:443', 'tag:mesh'] as const),
  ],
  [
    'is released has not what one of the others wants that is removing it',
    service([owner(), other(), third({ leaving: ago(1), ports: ['tcp:80'] })], ['tcp:443', 'tcp:80']),
    ...([undefined, {}, 'there, elsewhere (leaving)', 'tcp:443', 'tag:mesh'] as const),
  ],
  [
    'is released keeps what it has where all others are removing it',
    service([owner({ ports: ['tcp:80'] }), other({ leaving: ago(1) })], ['tcp:80']),
    ...([undefined, {}, 'there (leaving)', 'tcp:80', 'tag:mesh'] as const),
  ],
  [
    'was adopted keeps what its creator gave it while it is released',
    service([owner(), other({ ports: ['tcp:80'], tags: ['tag:b'] })], ['tcp:443'], true),
    ...([undefined, {}, 'there', 'tcp:443', 'tag:mesh'] as const),
  ],
];

describe('a VIP service that', () => {
  it.each(WRITTEN)('%s', (_, current, claim, context, owners, ports, tags) => {
    const { action } = decide(current, claim && { ...CLAIM, ...claim }, { ...CONTEXT, ...context });
    const { fields } = action.do === 'put' ? action : { fields: {} };
    const written = { ...current, ...fields };
    const shown = ownersOf(written).map(({ cluster, leaving }) => `${cluster}${leaving ? ' (leaving)' : ''}`);
    expect([shown, written.ports, written.tags].map(each => each.join(', '))).toEqual([owners, ports, tags]);
  });

  it.each(ROWS)('%s', (_, current, claim, context, action, state) => {
    const decided = decide(current, claim && { ...CLAIM, ...claim }, { ...CONTEXT, ...context });
    const { do: what } = decided.action;
    expect(decided.action.do === 'put' ? `${what} ${decided.action.result}` : what).toBe(action);
    expect(decided.state && `${decided.state.status} ${decided.state.reason}`).toBe(state);
  });

  it('was adopted before there was a list has a warning with what to add', () => {
    const adopted = service([owner()], ['tcp:443'], true);
    const { state } = decide(adopted, { ...CLAIM, notAdoptable: 'add "web"' }, CONTEXT);
    expect(state?.warnings).toMatchObject([{ reason: 'NotAdoptable', fix: 'add "web"' }]);
  });

  it('is not shared has a message with the line to add', () => {
    const { state } = decide(service([other({ shareWith: [] })]), CLAIM, CONTEXT);
    expect(state && formatProblem(state)).toBe(
      `MeshEndpoints default/web of cluster there has service svc:web, and does not share it: add shareWith: [{"installation":"${OURS}","namespace":"default"}] to its entry there, or use another name`,
    );
  });

  it('is written keeps the fields and the owners that mesh-gateway does not know', () => {
    const newer = other({ ports: ['tcp:80'], more: { since: 'a newer version' } });
    const { action } = decide(service([newer]), CLAIM, CONTEXT);
    expect(action).toMatchObject({
      fields: {
        comment: 'kept',
        addrs: ['100.96.0.1', 'fd7a:115c:a1e0:ff::1'],
        ports: ['tcp:443', 'tcp:80'],
      },
    });
    expect(JSON.stringify(action)).toContain('a newer version');
  });
});
