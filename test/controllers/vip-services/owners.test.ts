import { describe, expect, it } from 'vitest';
import {
  OWNERS,
  ownersOf,
  ownershipOf,
  unsharedOf,
  withOwners,
} from '../../../src/controllers/vip-services/owners.ts';
import type { Owner } from '../../../src/controllers/vip-services/owners.ts';

const OWNER: Owner = {
  ...{ installation: '0a1b2c3d', cluster: 'here', object: 'default/web', strategy: 'shared' },
  ...{ ports: ['tcp:443'], tags: ['tag:mesh'], shareWith: [], heartbeat: new Date('2026-01-15T12:00:00Z') },
};
const { heartbeat, ...FIELDS } = OWNER;
/** As it is written. */
const WRITTEN = { ...FIELDS, heartbeat: '2026-01-15T12:00:00Z' };

const annotated = (text: string) => ({ annotations: { [OWNERS]: text } });
const listing = (...owners: readonly unknown[]) => annotated(JSON.stringify({ owners }));
const without = (field: keyof typeof WRITTEN) => ({ ...WRITTEN, [field]: undefined });

describe('the owners of a VIP service', () => {
  it('are read as they were written, with what a newer version has added', () => {
    const leaving = { ...OWNER, installation: 'ffffffff', strategy: 'isolated', leaving: heartbeat } as const;
    const newer = { ...OWNER, more: { since: 'later' } };
    for (const isAdopted of [true, false]) {
      const annotations = withOwners({ a: 'b' }, [leaving, newer], isAdopted);
      expect(ownershipOf({ annotations })).toEqual({ is: 'owned', owners: [leaving, newer], isAdopted });
      expect(annotations['a']).toBe('b');
    }
  });

  it('of an adopted service leave nothing once the last one has left', () => {
    const annotations = withOwners({ a: 'b' }, [OWNER], true);
    expect(withOwners(annotations, [], true)).toEqual({ a: 'b' });
    expect(ownershipOf({ annotations: withOwners(annotations, [], false) })).toMatchObject({ owners: [] });
  });

  it.each<readonly [string, Parameters<typeof ownershipOf>[0], string | undefined]>([
    ['without an annotation', { annotations: {} }, undefined],
    [
      "with that of the vendor's operator",
      { annotations: { ...listing(WRITTEN).annotations, 'tailscale.com/owner-references': '{}' } },
      "the vendor's operator owns it",
    ],
    ...[
      ['that are not JSON', annotated('{')],
      ['that are no list', annotated('{"owners":{"length":65}}')],
      ['that are missing', annotated('{}')],
      ['that are no object', listing('web')],
      ...(['installation', 'cluster', 'object', 'ports', 'tags', 'heartbeat'] as const).map(
        field => [`without ${field}`, listing(without(field))] as const,
      ),
      ...(['installation', 'cluster', 'object', 'ports', 'tags', 'heartbeat', 'leaving'] as const).map(
        field => [`with a number as ${field}`, listing({ ...WRITTEN, [field]: 1 })] as const,
      ),
      ['with a port that is no text', listing({ ...WRITTEN, ports: ['tcp:443', 443] })],
      ['with a tag that is no text', listing({ ...WRITTEN, tags: ['tag:mesh', null] })],
      ['with a heartbeat that is no time', listing({ ...WRITTEN, heartbeat: 'today' })],
      ['one of which cannot be read', listing(WRITTEN, {})],
    ].map(([what, service]) => [what, service, 'cannot be read'] as const),
    ['that are 65', listing(...Array.from({ length: 65 }, () => WRITTEN)), 'more than 64 owners or 16 KB'],
  ] as never)('%s are foreign', (_, service, why) => {
    const ownership = ownershipOf(service);
    expect(ownership.is).toBe('foreign');
    if (why === undefined) expect(ownership).toEqual({ is: 'foreign', why });
    else expect(ownership).toMatchObject({ why: expect.stringContaining(why) as string });
    expect(ownersOf(service)).toEqual([]);
  });

  it('are 64 at most, in 16 KB', () => {
    expect(ownersOf(listing(...Array.from({ length: 64 }, () => WRITTEN)))).toHaveLength(64);
    const short = listing({ ...WRITTEN, cluster: '' }).annotations[OWNERS];
    const sized = (bytes: number) => listing({ ...WRITTEN, cluster: 'x'.repeat(bytes - short.length) });
    expect(sized(16_384).annotations[OWNERS]).toHaveLength(16_384);
    expect([16_384, 16_385].map(bytes => ownershipOf(sized(bytes)).is)).toEqual(['owned', 'foreign']);
  });

  it.each([
    ['isolated', 'isolated'],
    ['shared', 'shared'],
    ['of a newer version', 'shared'],
  ])('with a strategy %s are %s', (written, strategy) => {
    expect(ownersOf(listing({ ...WRITTEN, strategy: written }))).toMatchObject([{ strategy }]);
  });

  it('without a valid shareWith share it with no other', () => {
    for (const shareWith of [undefined, 'all', [1]])
      expect(ownersOf(listing({ ...WRITTEN, shareWith }))[0]).not.toHaveProperty('shareWith');
  });
});

describe('of several owners of a service', () => {
  const [first, second] = ['aaaaaaaa', 'bbbbbbbb'].map(installation => ({ ...OWNER, installation })) as [
    Owner,
    Owner,
  ];
  const sharing = (owner: Owner, ...shareWith: readonly string[]) => ({ ...owner, shareWith });

  it.each([
    ['one alone is the first', [first], []],
    ['the second is not shared with', [first, second], [second]],
    ['the second is shared with by the first', [sharing(first, 'bbbbbbbb'), second], []],
    [
      'the second shares it with itself alone',
      [first, sharing(second, 'bbbbbbbb')],
      [sharing(second, 'bbbbbbbb')],
    ],
    [
      'the first is isolated, whatever it shares',
      [{ ...sharing(first, 'bbbbbbbb'), strategy: 'isolated' as const }, second],
      [second],
    ],
    [
      'the first is leaving, so that the second counts as first',
      [{ ...first, leaving: heartbeat }, second],
      [],
    ],
  ])('%s', (_, owners, unshared) => {
    expect(unsharedOf(owners)).toEqual(unshared);
  });
});
