import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TRUST_BYTES } from '../../../src/api/shares.ts';
import { caRefIn, formatTrust, othersOf } from '../../../src/api/trust.ts';
import type { Trust, TrustedCa } from '../../../src/api/trust.ts';
import type { Input } from '../../../src/controllers/mesh-trust/plan.ts';
import { isAsPlanned, planTrust } from '../../../src/controllers/mesh-trust/plan.ts';
import { runs } from '../../support/runs.ts';

const bundle = (text: string, kilobytes = 1): TrustedCa => ({
  is: 'found',
  pem: text.repeat(kilobytes * 1024).slice(0, kilobytes * 1024),
});
const none: Trust = new Map();

function plan(
  found: Trust,
  { published = none, unreferenced = new Set() }: Partial<Pick<Input, 'published' | 'unreferenced'>> = {},
): Trust {
  return planTrust({ refs: [...found.keys()].map(caRefIn), found, published, unreferenced });
}

function reasons(trust: Trust): Readonly<Record<string, string>> {
  return Object.fromEntries([...trust].map(([ref, ca]) => [ref, ca.is === 'found' ? ca.is : ca.reason]));
}

/** Trust with a bundle of these kilobytes for each reference. */
function bundles(sizes: Readonly<Record<string, number>>): Trust {
  return new Map(Object.entries(sizes).map(([ref, kilobytes]) => [`${ref}/k`, bundle(ref, kilobytes)]));
}

/** How many kilobytes each reference has: its certificates, or nothing, or less than there are. */
function sizes(trust: Trust): Readonly<Record<string, number | string>> {
  return Object.fromEntries(
    [...trust].map(([ref, ca]) => {
      if (ca.is !== 'found') return [ref, ca.reason];
      const size = ca.pem.length / 1024;
      return [ref, ca.isOutdated ? `${size}, outdated` : size];
    }),
  );
}

describe('the plan of mesh-trust', () => {
  it('leaves out what does not fit, and reports it', () => {
    const planned = plan(bundles({ 'n/a': 250, 'n/b': 250, 'n/c': 250, 'n/d': 250 }));
    expect(sizes(planned)).toEqual({
      'n/a/k': 250,
      'n/b/k': 250,
      'n/c/k': 250,
      'n//': 'TooManyTlsSettings',
    });
  });

  it('never displaces what is published by what is new', () => {
    const all = bundles({ 'n/a': 250, 'n/b': 250, 'n/c': 250, 'n/d': 250 });
    const published = new Map([...all].slice(1));
    expect(sizes(plan(all, { published }))).toMatchObject({
      'n/b/k': 250,
      'n/c/k': 250,
      'n/d/k': 250,
      'n//': 'TooManyTlsSettings',
    });
  });

  it('gives a namespace that is alone all of it', () => {
    const all = bundles(Object.fromEntries(Array.from({ length: 890 }, (_, at) => [`n/c${at}`, 1])));
    const small = new Map([...all].slice(0, 770));
    expect(plan(small)).toEqual(small);
    expect([...plan(all).values()].filter(({ is }) => is === 'found').length).toBeGreaterThan(770);
  });

  it.each([
    [
      'keeps what another namespace has while one that sorts earlier grows',
      {
        found: bundles({ 'a/a': 250, 'a/b': 250, 'a/c': 250, 'a/d': 140, 'z/a': 100 }),
        published: bundles({ 'a/a': 250, 'a/b': 250, 'a/c': 200, 'a/d': 10, 'z/a': 100 }),
      },
      { 'a/a/k': 250, 'a/b/k': 250, 'a/c/k': 250, 'a/d/k': '10, outdated', 'z/a/k': 100 },
    ],
    [
      'gives a new namespace room that another had beyond its share',
      {
        found: bundles({ 'a/a': 250, 'a/b': 250, 'a/c': 250, 'a/d': 140, 'z/a': 100 }),
        published: bundles({ 'a/a': 250, 'a/b': 250, 'a/c': 250, 'a/d': 140 }),
      },
      { 'a/a/k': 250, 'a/b/k': 250, 'a/d/k': 140, 'a//': 'TooManyTlsSettings', 'z/a/k': 100 },
    ],
    [
      'keeps the published version where a larger one does not fit',
      {
        found: bundles({ 'a/a': 200, 'a/b': 240, 'z/a': 250, 'z/b': 250 }),
        published: bundles({ 'a/a': 200, 'z/a': 250, 'z/b': 150 }),
      },
      { 'a/a/k': 200, 'a/b/k': 240, 'z/a/k': 250, 'z/b/k': '150, outdated' },
    ],
    [
      'takes a smaller version, and one that is missing, whatever others have',
      {
        found: new Map([
          ...bundles({ 'a/a': 250, 'a/b': 250, 'a/c': 250, 'a/d': 250, 'z/a': 50 }),
          ['z/b/k', { is: 'missing', reason: 'CertificateNotFound', why: { text: 'none' } }] as const,
        ]),
        published: bundles({ 'a/a': 250, 'a/b': 250, 'z/a': 100, 'z/b': 100 }),
      },
      {
        'a/a/k': 250,
        'a/b/k': 250,
        'a/c/k': 250,
        'a//': 'TooManyTlsSettings',
        'z/a/k': 50,
        'z/b/k': 'CertificateNotFound',
      },
    ],
  ])('%s', (_, { found, published }, expected) => {
    expect(sizes(plan(found, { published }))).toEqual(expected);
  });

  it('replaces certificates that several namespaces share, though there is no room for both', () => {
    const [one, other] = [bundle('one', 150), bundle('other', 150)];
    const refs = Array.from({ length: 5 }, (_, at) => `n${at}/shared/k`);
    const rest = bundles({ 'a/a': 250, 'b/a': 250 });
    const published = new Map([...refs.map(ref => [ref, one] as const), ...rest]);
    const found = new Map([...refs.map(ref => [ref, other] as const), ...rest]);
    expect(plan(found, { published })).toEqual(new Map([...found].sort()));
  });

  it('has room for a namespace beside thousands of missing references of another', () => {
    const missing = Array.from({ length: 10_000 }, (_, at): readonly [string, TrustedCa] => {
      const why = { text: `ConfigMap a/c${at} does not exist`, fix: 'create it, or correct tls.caRef' };
      return [`a/c${at}/k`, { is: 'missing', reason: 'CertificateNotFound', why }];
    });
    const found = new Map([...missing, ...bundles({ 'z/a': 200, 'z/b': 200 })]);
    const published = new Map(missing.slice(0, 3000));
    expect(sizes(plan(found, { published }))).toMatchObject({ 'z/a/k': 200, 'z/b/k': 200 });
  });

  it('remembers that there was no room until a reference is read again', () => {
    const all = bundles({ 'n/a': 250, 'n/b': 250, 'n/c': 250, 'n/d': 250 });
    const published = plan(all);
    const refs = [...all.keys()].map(caRefIn);
    const rest = { refs, published, unreferenced: new Set<string>() };
    expect(planTrust({ ...rest, found: none }).has(othersOf('n'))).toBe(true);
    const smaller = bundles({ 'n/d': 100 });
    expect(planTrust({ ...rest, found: smaller }).has(othersOf('n'))).toBe(false);
  });

  it('has room for many references to equal certificates', () => {
    const found = new Map(Array.from({ length: 1000 }, (_, at) => [`n/c${at}/k`, bundle('a', 200)] as const));
    expect(new Set(Object.values(reasons(plan(found))))).toEqual(new Set(['found']));
  });

  it('gives up what only waits for its removal first', () => {
    const published = new Map([['n/old/k', bundle('o', 800)]]);
    const unreferenced = new Set(['n/old/k']);
    expect(reasons(plan(new Map([['n/new/k', bundle('n')]]), { published, unreferenced }))).toEqual({
      'n/new/k': 'found',
      'n/old/k': 'found',
    });
    expect(
      plan(new Map([['n/new/k', bundle('n', 200)]]), { published, unreferenced }).get('n/new/k'),
    ).toMatchObject({
      is: 'found',
    });
  });

  const someTrust = fc
    .array(
      fc.tuple(
        fc.constantFrom('a', 'm', 'z'),
        fc.nat(10),
        fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
        fc.integer({ min: 1, max: 250 }),
      ),
      { maxLength: 30 },
    )
    .map(
      list =>
        new Map(
          list.map(([of, name, text, size]) => [`${of}/c${name}/k`, bundle(`${of}${text}`, size)] as const),
        ),
    );
  const options = { ...runs(200), seed: Number(process.env['SEED'] ?? 1) };

  it('is stable, and always fits', () => {
    fc.assert(
      fc.property(someTrust, someTrust, (published, found) => {
        const planned = plan(found, { published });
        const data = formatTrust(planned);
        const bytes = Object.entries(data).reduce((sum, [key, text]) => sum + key.length + text.length, 0);
        expect(bytes).toBeLessThanOrEqual(TRUST_BYTES + 1024);
        const again = plan(found, { published: planned });
        expect(formatTrust(plan(found, { published: again }))).toEqual(formatTrust(again));
        expect(isAsPlanned(data, planned)).toBe(true);
      }),
      options,
    );
  });

  it('has all certificates of a namespace within its share, whatever others have, and keeps them', () => {
    fc.assert(
      fc.property(someTrust, someTrust, (before, found) => {
        const published = plan(before);
        const planned = plan(found, { published });
        const share = TRUST_BYTES / new Set([...found.keys()].map(ref => caRefIn(ref).namespace)).size;
        for (const namespace of ['a', 'm', 'z']) {
          const own = new Map([...found].filter(([ref]) => caRefIn(ref).namespace === namespace));
          const grown = new Map([...own].map(([ref, ca]) => [ref, larger(ca, published.get(ref))]));
          if (bytesOf(grown) > share) continue;
          for (const [ref, ca] of own) expect(planned.get(ref)).toEqual(ca);
        }
      }),
      options,
    );
  });
});

function larger(ca: TrustedCa, before: TrustedCa | undefined): TrustedCa {
  return before?.is === 'found' && ca.is === 'found' && before.pem.length > ca.pem.length ? before : ca;
}

function bytesOf(trust: Trust): number {
  return [...trust].reduce(
    (sum, [ref, ca]) => sum + ref.length + 160 + (ca.is === 'found' ? ca.pem.length : 0),
    0,
  );
}

describe('whether the ConfigMap is as planned', () => {
  const planned = new Map([['a/b/c', bundle('x')]]);
  const data = formatTrust(planned);

  it.each([
    ['not without its data', {}, false],
    ['with a key of others', { ...data, note: 'by others' }, true],
    ['not with certificates that nothing refers to', { ...data, ['0'.repeat(64)]: 'pem' }, false],
    ['not with other references', { ...data, references: '' }, false],
  ])('%s', (_, stored, expected) => {
    expect(isAsPlanned(stored, planned)).toBe(expected);
  });
});
