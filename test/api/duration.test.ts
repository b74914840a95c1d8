import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { durationMs } from '../../src/api/duration.ts';
import { duration } from '../../src/api/validation/validator-functions.ts';

const seed = Number(process.env['SEED'] ?? 1);

const DURATIONS: readonly (readonly [text: string, ms: number])[] = [
  ['0', 0],
  ['+0', 0],
  ['-0', 0],
  ['0s', 0],
  ['1ns', 1e-6],
  ['1us', 1e-3],
  ['1\u00b5s', 1e-3],
  ['1\u03bcs', 1e-3],
  ['1ms', 1],
  ['1s', 1000],
  ['1m', 60_000],
  ['1h', 3_600_000],
  ['2160h', 7_776_000_000],
  ['1m30s', 90_000],
  ['1h1m1s1ms', 3_661_001],
  ['1s1h', 3_601_000],
  ['1s1s', 2000],
  ['1.5s', 1500],
  ['.5s', 500],
  ['1.s', 1000],
  ['0.001s', 1],
  ['1.001s', 1001],
  ['0.1s0.2s', 300],
  ['+1s', 1000],
  ['-1s', -1000],
  ['-1.5h', -5_400_000],
  ['007s', 7000],
];

const NO_DURATIONS = [
  '',
  ' ',
  '1',
  '10',
  's',
  'h1',
  '.',
  '.s',
  '-',
  '+',
  '-s',
  '+-1s',
  '--1s',
  '1s-1s',
  '1s+1s',
]
  .concat([
    ' 1s',
    '1s ',
    '1 s',
    '1s 1s',
    '1S',
    '1H',
    '1d',
    '1w',
    '1y',
    '1sec',
    '1e3s',
    '1_000s',
    '1,5s',
    '1..5s',
  ])
  .concat(['1.5.5s', '00', '-00', 'soon', '0x1s', '١s', '1s\n', 'Infinitys', 'NaNs', '1m30']);

describe('a duration as Go reads it', () => {
  it.each(DURATIONS)('%s has its length', (text, ms) => {
    expect(durationMs(text)).toBe(ms + 0);
  });

  it.each(NO_DURATIONS)('is not "%s"', text => {
    expect(durationMs(text)).toBeUndefined();
  });

  it.each(['2562047h47m16.854775807s', '9223372036854775807ns', '-9223372036854775808ns'])(
    'supports up to 292 years: %s',
    text => {
      expect(durationMs(text)).toBeTypeOf('number');
    },
  );

  it.each(['2562048h', '2562047h47m16.854775808s', '9223372036854775808ns', '999999999999999999999h'])(
    'supports no longer time: %s',
    text => {
      expect(durationMs(text)).toBeUndefined();
    },
  );

  it('is exact: equal durations are equal in any notation', () => {
    const isExact = fc.property(PARTS, parts => {
      const text = parts.map(({ whole, thousandths, unit }) => `${whole}.${thousandths}${unit}`).join('');
      const us = parts.reduce((sum, { whole, thousandths, unit }) => {
        return sum + BigInt(`${whole}${thousandths}`) * BigInt(UNITS_MS[unit]);
      }, 0n);
      expect(durationMs(text), text).toBe(Number(us) / 1000);
    });
    fc.assert(isExact, { seed, numRuns: 1000 });
  });
});

const UNITS_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;

/** What the schema allows: up to four numbers with up to three decimals. */
const PARTS = fc.array(
  fc.record({
    whole: fc.nat(99),
    thousandths: fc.nat(999).map(number => String(number).padStart(3, '0')),
    unit: fc.constantFrom('ms', 's', 'm', 'h'),
  }),
  { minLength: 1, maxLength: 4 },
);

describe('duration() in a rule', () => {
  it('fails the rule where the text is none', () => {
    expect(() => duration('soon')).toThrow(new TypeError('soon is not a duration'));
    expect(duration('1m30s')).toBe(90_000_000_000n);
  });
});
