import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';
import type { Kind, ListNode, Node, ObjectNode, TextNode } from '../../../codegen/kind.ts';
import { repairs } from './arbitrary-repairs.ts';

/** Valid objects of a kind, as a user might write them. */
export function arbitraryObject(kind: Kind): Arbitrary<unknown> {
  return arbitraryOf(kind.root, '');
}

function arbitraryOf(node: Node, name: string): Arbitrary<unknown> {
  const known = KNOWN[name];
  if (known && node.is === 'text') return known;
  switch (node.is) {
    case 'text':
      return arbitraryText(node);
    case 'integer':
      return fc.integer({ min: node.minimum, max: node.maximum });
    case 'boolean':
      return fc.boolean();
    case 'int-or-string':
      return fc.oneof(fc.nat(), matching(node.pattern, node.maxLength));
    case 'list':
      return arbitraryList(node, name);
    case 'map':
      return fc.dictionary(KEY, arbitraryOf(node.values, ''), { maxKeys: Math.min(4, node.maxProperties) });
    case 'object':
      return arbitraryFields(node);
  }
}

/** Keys that are header names, label keys and resource names too. */
const KEY = fc.stringMatching(/^[A-Za-z]([A-Za-z0-9-]{0,20}[A-Za-z0-9])?$/);

/** Texts that CEL rules accept, which random ones rarely are. */
const KNOWN: Readonly<Record<string, Arbitrary<string>>> = {
  meshIP: fc.oneof(
    fc
      .tuple(fc.integer({ min: 64, max: 127 }), fc.nat(255), fc.nat(255))
      // No device is in 100.100.100.0/24.
      .filter(([second, third]) => second !== 100 || third !== 100)
      .map(parts => `100.${parts.join('.')}`),
    fc.array(fc.nat(0xffff), { minLength: 5, maxLength: 5 }).map(groups => {
      return `fd7a:115c:a1e0:${groups.map(group => group.toString(16)).join(':')}`;
    }),
  ),
  interval: fc.constantFrom('1s', '1h', '30s', '1m30s', '0.5m', '59m59.999s'),
  timeout: fc.constantFrom('100ms', '30s', '10s', '1.5s'),
  syncInterval: fc.constantFrom('1s', '1h', '30s'),
  keyExpiry: fc.constantFrom('1m', '2160h', '24h'),
  staleThreshold: fc.constantFrom('30m', '24h', '2h'),
  heartbeatInterval: fc.constantFrom('1m', '10m', '90s'),
  allowedCaller: fc.constantFrom('10.0.0.7', '10.0.0.0/24', 'fd00::7', 'fd00:1::/64'),
};

function arbitraryText(node: TextNode): Arbitrary<string> {
  if (node.enum) return fc.constantFrom(...node.enum);
  if (node.format) {
    const [min, max] = [new Date('2000-01-01T00:00:00Z'), new Date('2099-12-31T00:00:00Z')];
    return fc.date({ min, max, noInvalidDate: true }).map(date => date.toISOString());
  }
  if (node.pattern) return matching(node.pattern, node.maxLength ?? Infinity, node.minLength);
  return fc.string({ minLength: node.minLength ?? 0, maxLength: Math.min(40, node.maxLength ?? 40) });
}

function matching(pattern: string, maxLength: number, minLength = 0): Arbitrary<string> {
  return fc
    .stringMatching(new RegExp(pattern), { size: 'small' })
    .filter(text => text.length <= maxLength && text.length >= minLength);
}

function arbitraryList(node: ListNode, name: string): Arbitrary<unknown> {
  const items = arbitraryOf(node.items, singular(name));
  const bounds = { minLength: node.minItems ?? 0, maxLength: Math.min(4, node.maxItems) };
  const { unique } = node;
  switch (unique.by) {
    case 'nothing':
      return fc.array(items, bounds);
    case 'value':
      return fc.uniqueArray(items, bounds);
    case 'keys': {
      const selector = (item: unknown) =>
        unique.keys.map(key => (item as Record<string, unknown>)[key]).join();
      return fc.uniqueArray(items, { ...bounds, selector });
    }
  }
}

function singular(name: string): string {
  return name.replace(/s$/, '');
}

function arbitraryFields(node: ObjectNode): Arbitrary<unknown> {
  const fields = Object.entries(node.fields).map(
    ([name, field]) => [name, arbitraryOf(field, name)] as const,
  );
  const repair = repairs[node.title ?? ''];
  const record = fc.record(Object.fromEntries(fields), { requiredKeys: [...node.required] });
  return repair ? record.map(value => repair(value)) : record;
}
