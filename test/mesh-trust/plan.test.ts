import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { caRefIn, formatTrust } from '../../src/api/trust.ts';
import type { Trust, TrustedCa } from '../../src/api/trust.ts';
import type { Gathered } from '../../src/mesh-trust/plan.ts';
import { isAsPlanned, MAX_BYTES, planTrust } from '../../src/mesh-trust/plan.ts';

const bundle = (text: string, kilobytes = 1): TrustedCa => ({
  is: 'found',
  pem: text.repeat(kilobytes * 1024),
});
const none: Trust = new Map();

function plan(
  found: Trust,
  { published = none, unreferenced = new Set() }: Partial<Pick<Gathered, 'published' | 'unreferenced'>> = {},
): Trust {
  return planTrust({ refs: [...found.keys()].map(caRefIn), found, published, unreferenced });
}

function reasons(trust: Trust): Readonly<Record<string, string>> {
  return Object.fromEntries([...trust].map(([ref, ca]) => [ref, ca.is === 'found' ? ca.is : ca.reason]));
}

describe('the plan of mesh-trust', () => {
  it('leaves out what does not fit, and reports it', () => {
    const found = new Map(['a', 'b', 'c', 'd'].map(name => [`n/${name}/k`, bundle(name, 250)]));
    const planned = plan(found);
    expect(reasons(planned)).toEqual({
      'n/a/k': 'found',
      'n/b/k': 'found',
      'n/c/k': 'found',
      'n/d/k': 'TooManyTlsSettings',
    });
  });

  it('never displaces what is published by what is new', () => {
    const names = ['a', 'b', 'c', 'd'];
    const all = new Map(names.map(name => [`n/${name}/k`, bundle(name, 250)]));
    const published = new Map([...all].slice(1));
    expect(reasons(plan(all, { published }))).toMatchObject({
      'n/a/k': 'TooManyTlsSettings',
      'n/d/k': 'found',
    });
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

  it('is stable, and always fits', () => {
    const someTrust = fc
      .array(
        fc.tuple(fc.nat(30), fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), fc.integer({ min: 1, max: 250 })),
        {
          maxLength: 30,
        },
      )
      .map(list => new Map(list.map(([name, text, size]) => [`n/c${name}/k`, bundle(text, size)] as const)));
    fc.assert(
      fc.property(someTrust, someTrust, (published, found) => {
        const planned = plan(found, { published });
        const data = formatTrust(planned);
        const bytes = Object.entries(data).reduce((sum, [key, text]) => sum + key.length + text.length, 0);
        expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
        const again = plan(found, { published: planned });
        expect(formatTrust(plan(found, { published: again }))).toEqual(formatTrust(again));
        expect(isAsPlanned(data, planned)).toBe(true);
      }),
      { seed: Number(process.env['SEED'] ?? 1), numRuns: 100 },
    );
  });
});

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
