import { isIP } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { containsIP, familyOf, parseCidr } from '../../src/api/ip.ts';

const seed = Number(process.env['SEED'] ?? 1);

const ADDRESSES: readonly string[] = [
  '0.0.0.0',
  '1.2.3.4',
  '100.64.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '1::',
  '1::8',
  '1:2:3:4:5:6:7:8',
  '1:2:3:4:5:6:7::',
  '::2:3:4:5:6:7:8',
  '1:2:3::6:7:8',
  '0001:0002:0003:0004:0005:0006:0007:0008',
  'FD7A:115c:A1e0::53',
  '::1.2.3.4',
  '64:ff9b::1.2.3.4',
  '1:2:3:4:5:6:1.2.3.4',
  '::ffff:1',
  '::ffff:0:1.2.3.4',
];

const NO_ADDRESSES: readonly (readonly [why: string, texts: readonly string[]])[] = [
  ['nothing or a name', ['', ' ', 'localhost', '.', ':', '...', 'null']],
  [
    'too few or too many parts',
    ['1', '1.2.3', '1.2.3.4.5', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', ':::', '::::'],
  ],
  ['an empty part', ['1.2.3.', '.1.2.3', '1..2.3', ':1:2:3:4:5:6:7', '1:2:3:4:5:6:7:', '1:::2']],
  [':: twice', ['::1::', '1::2::3', '::::1']],
  [':: that stands for nothing', ['1:2:3:4::5:6:7:8', '::1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8::']],
  [
    'a part that is too large',
    ['256.0.0.1', '1.2.3.1000', '99999999999999999999.1.1.1', '10000::', '::12345'],
  ],
  [
    'leading zeros, which some read as octal',
    ['01.2.3.4', '1.2.3.04', '00.0.0.0', '100.064.0.1', '::1.2.3.04'],
  ],
  ['other digits', ['0x7f.0.0.1', '1.2.3.4a', '١.2.3.4', '::g', '::-1', '1.-2.3.4', '+1.2.3.4']],
  ['space around it', [' 1.2.3.4', '1.2.3.4 ', '1.2.3.4\n', ' ::1', '::1\n']],
  ['a zone', ['fe80::1%eth0', 'fe80::1%', '1.2.3.4%1']],
  ['brackets, a port or a length', ['[::1]', '[::1]:80', '1.2.3.4:80', '1.2.3.4/8', '::/0']],
  [
    'IPv4 mapped into IPv6',
    ['::ffff:1.2.3.4', '::FFFF:1.2.3.4', '::ffff:102:304', '0:0:0:0:0:ffff:1:2', '0:0::ffff:1.2.3.4'],
  ],
  [
    'IPv4 that is not at the end',
    ['1.2.3.4::', '1.2.3.4:1::', '1:1.2.3.4::', '::1.2.3.4:1', '::1.2.3.4:1.2.3.4'],
  ],
  ['IPv4 with too little room', ['1:2:3:4:5:6:7:1.2.3.4', '1.2.3.4:1:2:3:4:5:6']],
];

describe('an address', () => {
  it.each(ADDRESSES)('may be %s', text => {
    expect(familyOf(text)).toBe(text.includes(':') ? 'ipv6' : 'ipv4');
  });

  it.each(NO_ADDRESSES)('is not %s', (_why, texts) => {
    expect(texts.filter(text => familyOf(text) !== undefined)).toEqual([]);
  });
});

const OCTETS = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255));
const GROUPS = fc.oneof(
  fc.array(fc.oneof(fc.constant(0), fc.nat(0xffff)), { minLength: 8, maxLength: 8 }),
  fc.tuple(fc.nat(0xffff), fc.nat(0xffff)).map(tail => [0, 0, 0, 0, 0, 0xffff, ...tail]),
);

/** All spellings of valid groups; one of them for each choice. */
const SPELLINGS: readonly ((groups: readonly number[]) => string)[] = [
  groups => groups.map(group => group.toString(16)).join(':'),
  groups => groups.map(group => group.toString(16).toUpperCase().padStart(4, '0')).join(':'),
  groups => `${joined(groups.slice(0, 6))}:${embedded(groups)}`,
  groups => shortened(groups.map(group => group.toString(16)).join(':')),
  groups => shortened(`${joined(groups.slice(0, 6))}:${embedded(groups)}`),
];

function joined(groups: readonly number[]): string {
  return groups.map(group => group.toString(16)).join(':');
}

function embedded(groups: readonly number[]): string {
  return groups
    .slice(6)
    .flatMap(group => [group >> 8, group & 0xff])
    .join('.');
}

/** With the first run of zeros, where there is one, as `::`. */
function shortened(text: string): string {
  return text.replace(/(^|:)0(:0)*(:|$)/, '::');
}

function isMapped(groups: readonly number[]): boolean {
  return groups.slice(0, 5).every(group => group === 0) && groups[5] === 0xffff;
}

/** The family of a text in Node, without what the API server refuses: zones, and IPv4-mapped IPv6 addresses. */
function isAddressByNode(text: string): boolean {
  if (isIP(text) !== 6) return isIP(text) === 4;
  if (text.includes('%')) return false;
  return !/^\[::ffff:[0-9a-f]+:[0-9a-f]+\]$/.test(new URL(`http://[${text}]`).hostname);
}

/** An address with some characters added, removed or replaced. */
const ALMOST_ADDRESSES = fc
  .tuple(
    fc.oneof(fc.ipV4(), fc.ipV6(), GROUPS.map(joined).map(shortened)),
    fc.array(fc.tuple(fc.nat(40), fc.nat(2), fc.constantFrom(...Array.from('0123459aF:.%:: '))), {
      maxLength: 3,
    }),
  )
  .map(([text, edits]) =>
    edits.reduce(
      (edited, [at, removed, added]) => edited.slice(0, at) + added + edited.slice(at + removed),
      text,
    ),
  );

describe('any address', () => {
  it('may be any four octets', () => {
    const isRead = fc.property(OCTETS, octets => {
      expect(familyOf(octets.join('.'))).toBe('ipv4');
    });
    fc.assert(isRead, { seed, numRuns: 500 });
  });

  it('may be any eight groups, however they are written, but for IPv4 inside of IPv6', () => {
    const isRead = fc.property(GROUPS, fc.constantFrom(...SPELLINGS), (groups, spell) => {
      expect(familyOf(spell(groups)), spell(groups)).toBe(isMapped(groups) ? undefined : 'ipv6');
    });
    fc.assert(isRead, { seed, numRuns: 2000 });
  });

  it('is one for Node too, and nothing else is', () => {
    const agrees = fc.property(ALMOST_ADDRESSES, text => {
      expect(familyOf(text) !== undefined, text).toBe(isAddressByNode(text));
    });
    fc.assert(agrees, { seed, numRuns: 5000 });
  });
});

const RANGES: readonly (readonly [range: string, inside: readonly string[], outside: readonly string[]])[] = [
  ['0.0.0.0/0', ['0.0.0.0', '255.255.255.255'], ['::', '::1.2.3.4']],
  ['::/0', ['::', '::1.2.3.4', 'ffff::'], ['0.0.0.0']],
  ['100.64.0.0/10', ['100.64.0.0', '100.127.255.255'], ['100.63.255.255', '100.128.0.0', '101.64.0.0']],
  ['100.64.0.0/16', ['100.64.0.0', '100.64.255.255'], ['100.65.0.0', '100.63.255.255']],
  ['10.1.2.0/23', ['10.1.2.0', '10.1.3.255'], ['10.1.1.255', '10.1.4.0']],
  ['10.1.2.3/32', ['10.1.2.3'], ['10.1.2.2', '10.1.2.4']],
  ['128.0.0.0/1', ['128.0.0.0', '255.0.0.0'], ['127.255.255.255']],
  [
    'fd7a:115c:a1e0::/48',
    ['fd7a:115c:a1e0::', 'fd7a:115c:a1e0:ffff:ffff:ffff:ffff:ffff'],
    ['fd7a:115c:a1e1::', 'fd7a:115c:a1df::'],
  ],
  ['fe80::/10', ['fe80::', 'febf:ffff::'], ['fe7f::', 'fec0::']],
  ['::1/128', ['::1'], ['::', '::2']],
];

describe('a range', () => {
  it.each(RANGES)('%s contains the addresses of its range only', (range, inside, outside) => {
    const isIn = (text: string) => containsIP(parseCidr(range), text);
    expect(inside.filter(text => !isIn(text))).toEqual([]);
    expect(outside.filter(isIn)).toEqual([]);
  });

  it.each([
    '',
    '10.0.0.0',
    '10.0.0.0/',
    '/8',
    '10.0.0.0/33',
    '::/129',
    '10.0.0.0/-1',
    '10.0.0.0/8.5',
    '10.0.0.0/ 8',
    '10.0.0.0/1e1',
    '10.0.0.0/08',
    '10.0.0.0/8/8',
    '10.0.0/8',
    '::ffff:10.0.0.0/104',
  ])('is not %s', text => {
    expect(() => parseCidr(text)).toThrow(new TypeError(`${text} is not a range of addresses`));
  });
});
