import { assert, integer, ipV4, property, tuple, uniqueArray } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatTargets, parseTargets, targetsVersion } from '../../src/api/relay-targets.ts';
import type { IgnoredLines } from '../../src/api/relay-targets.ts';

const DNS = '100.64.0.7:53';
const target = { address: '100.64.0.7', port: 53 };

function parsed(text: string) {
  const reports: IgnoredLines[] = [];
  const targets = parseTargets(text, report => reports.push(report));
  return { targets: Object.fromEntries(targets), reports };
}

describe('relay targets', () => {
  it('are one line per port, sorted by port', () => {
    const targets = new Map([
      [20_010, '[fd7a:115c:a1e0::1]:53'],
      [9, DNS],
    ]);
    expect(formatTargets(targets)).toBe(`9 ${DNS}\n20010 [fd7a:115c:a1e0::1]:53\n`);
  });

  it('are the same after they are written and parsed', () => {
    const port = integer({ min: 1, max: 65_535 });
    const entries = uniqueArray(tuple(port, ipV4(), port), { selector: ([key]) => key });
    assert(
      property(entries, generated => {
        const text = formatTargets(new Map(generated.map(([own, ip, of]) => [own, `${ip}:${of}`])));
        expect(parsed(text)).toEqual({
          targets: Object.fromEntries(generated.map(([own, ip, of]) => [own, { address: ip, port: of }])),
          reports: [],
        });
      }),
    );
  });

  it('may be none', () => {
    expect(formatTargets(new Map())).toBe('');
    expect(parsed('')).toEqual({ targets: {}, reports: [] });
  });

  it.each([
    ['a port of 0', `0 ${DNS}`],
    ['a port above 65535', `65536 ${DNS}`],
    ['a port with a leading zero', `020000 ${DNS}`],
    ['a host name', '20000 dns.example:53'],
    ['an address without a port', '20000 100.64.0.7'],
    ['an IPv6 address without brackets', '20000 fd7a:115c:a1e0::1:53'],
    ['a third word', `20000 ${DNS} x`],
    ['a carriage return', `20000 ${DNS}\r`],
    ['a very long line', `20000 ${'1'.repeat(1e6)}`],
  ])('with %s are ignored and reported', (_what, line) => {
    expect(parsed(`${line}\n20001 ${DNS}\n`)).toEqual({
      targets: { 20001: target },
      reports: [{ count: 1, first: 'line 1 is not a port and an address with a port' }],
    });
  });

  it('of a port that is repeated are the first', () => {
    const text = `20000 ${DNS}\n20000 100.64.0.8:53\n20000 100.64.0.9:53\n`;
    expect(parsed(text)).toEqual({
      targets: { 20000: target },
      reports: [{ count: 2, first: 'line 2 repeats a port' }],
    });
  });

  it('are bounded in number, and reported once', () => {
    const { targets, reports } = parsed('x\n'.repeat(1e6));
    expect(targets).toEqual({});
    expect(reports).toEqual([{ count: 65_535, first: 'line 1 is not a port and an address with a port' }]);
  });
});

describe('the version of relay targets', () => {
  it('is the first 16 digits of their hash', () => {
    expect(targetsVersion('')).toBe('e3b0c44298fc1c14');
    expect(targetsVersion(`20000 ${DNS}\n`)).toMatch(/^[0-9a-f]{16}$/);
    expect(targetsVersion(`20000 ${DNS}\n`)).not.toBe(targetsVersion(`20001 ${DNS}\n`));
  });
});
