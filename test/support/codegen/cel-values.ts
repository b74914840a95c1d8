import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';
import type { Node, ObjectNode, TextNode } from '../../../codegen/kind.ts';

/**
 * Stored values of a node for trying a rule: of the right types, with the fields that the rule names, and few values
 * of each so that they coincide.
 */
export function arbitrarySelf(node: Node, rule: string): Arbitrary<unknown> {
  switch (node.is) {
    case 'text':
      return arbitraryText(node, rule);
    case 'integer':
      return fc.oneof(
        fc.integer({ min: node.minimum, max: node.maximum }),
        fc.integer({ min: node.minimum, max: Math.min(node.maximum, node.minimum + 3) }),
      );
    case 'boolean':
      return fc.boolean();
    case 'int-or-string':
      return fc.constantFrom(1, '500m');
    case 'list':
      return fc.array(arbitrarySelf(node.items, rule), { maxLength: 3 });
    case 'map':
      return fc.dictionary(KEYS, arbitrarySelf(node.values, rule), { maxKeys: 3 });
    case 'object':
      return arbitraryFields(node, rule);
  }
}

function arbitraryFields(node: ObjectNode, rule: string): Arbitrary<unknown> {
  const named = Object.entries(node.fields).filter(([name]) => new RegExp(`\\b${name}\\b`).test(rule));
  const always = named.filter(([name, field]) => node.required.includes(name) || field.default !== undefined);
  const fields = named.map(([name, field]) => [name, arbitrarySelf(field, rule)] as const);
  return fc.record(Object.fromEntries(fields), { requiredKeys: always.map(([name]) => name) });
}

function arbitraryText(node: TextNode, rule: string): Arbitrary<string> {
  if (node.enum) return fc.constantFrom(...node.enum);
  const addresses = fc.oneof(fc.constantFrom(...ADDRESSES), fc.ipV4(), fc.ipV6(), MESH_ADDRESSES);
  if (/\bisCIDR\(/.test(rule))
    return fc.oneof(
      addresses,
      fc.tuple(addresses, LENGTHS).map(parts => parts.join('')),
    );
  if (/\bisIP\(/.test(rule)) return addresses;
  if (/\bduration\(/.test(rule)) return fc.constantFrom(...DURATIONS);
  return fc.constantFrom(...TEXTS);
}

const MESH_ADDRESSES = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255)).map(parts => `100.${parts.join('.')}`);

const LENGTHS = fc.oneof(
  fc.constantFrom(
    '/',
    '/0',
    '/00',
    '/08',
    '/8',
    '/ 8',
    '/+8',
    '/-1',
    '/8.0',
    '/0x8',
    '/1e1',
    '/8/8',
    '//8',
    '/32',
    '/33',
  ),
  fc.constantFrom('/128', '/129', '/0128', '/104', '%eth0/64', '/255.0.0.0'),
);

const ADDRESSES = [
  '',
  'nowhere',
  '100.64.0.0',
  '100.63.255.255',
  '100.100.100.200',
  '100.127.255.255',
  '100.128.0.0',
  '100.064.0.1',
  '100.64.0.1.1',
  '::ffff:100.64.0.1',
  'fd7a:115c:a1e0::1',
  'fd7a:115c:a1e0:ffff:ffff:ffff:ffff:ffff',
  'fd7a:115c:a1e1::',
  'fd7a:115c:a1df::',
  'fd7a:115c:a1e0::%eth0',
  'FD7A:115C:A1E0:AB12::53',
  'fd7a:115c:a1e0::100.64.0.1',
];

const DURATIONS = [
  '',
  'soon',
  '0s',
  '1ms',
  '99ms',
  '100ms',
  '999ms',
  '1s',
  '30s',
  '59s',
  '1m',
  '4m60s',
  '5m',
  '5m1ms',
].concat(['59m', '60m', '1h', '1h1ms', '2h', '2159h', '2160h', '2160h1s', '1.5h', '0.5s', '1']);

const NAME_63 = 'a'.repeat(63);
const TEXTS = [
  '',
  'a',
  'b',
  'web',
  '🚀',
  `svc:${NAME_63}`,
  NAME_63,
  `${NAME_63}a`,
  '🚀'.repeat(63),
  '🚀'.repeat(64),
];

const NAME_128 = 'h'.repeat(128);
const KEYS = fc.constantFrom('', 'a', 'X-Token', 'a b', "it's", 'a:b', 'ä', NAME_128, `${NAME_128}h`);
