import { describe, expect, it } from 'vitest';
import type { Node } from '../../codegen/kind.ts';
import { rulesModule } from '../../codegen/validator/rules.ts';
import { compiledRule, interpretedRule } from '../support/codegen/cel.ts';
import { evaluateValidator } from '../support/schema/evaluate.ts';
import { sample, specField, tinyKind } from '../support/codegen/tiny-schema.ts';

const port = (schema: object) => ({ ...schema, description: 'A field.' });
const kind = tinyKind({
  [specField('note', 'maxLength')]: 64,
  'sample.json#/$defs/NamedPort/properties/note': port({ type: 'string', maxLength: 8 }),
  'sample.json#/$defs/NamedPort/properties/tls': port({ type: 'boolean', default: false }),
});
const spec: Node = kind.root.fields['spec'] ?? kind.root;
const { shape } = evaluateValidator(kind);

/** A spec as it would be stored. */
function stored(fields: object): unknown {
  return (shape(sample({ ...fields })) as { readonly spec: unknown }).spec;
}

const WEB = { name: 'web', number: 80 };
const TLS = { name: 'tls', number: 443, tls: true };

/** The fields of a spec, a rule about it, and whether the rule holds. */
type Row = readonly [fields: object, rule: string, outcome: boolean];

const TABLES: Readonly<Record<string, readonly Row[]>> = {
  'compares texts': [
    [{ mode: 'Slow' }, "self.mode == 'Slow'", true],
    [{ mode: 'Slow' }, "self.mode == 'slow'", false],
    [{ mode: 'Slow' }, "self.mode != 'Fast'", true],
    [{ mode: 'Slow' }, "'Slow' == self.mode", true],
    [{ note: 'a"b\\c\u2028' }, String.raw`self.note == 'a"b\\c\u2028'`, true],
  ],
  'compares numbers': [
    [{ count: 3 }, 'self.count == 3', true],
    [{ count: 3 }, 'self.count != 3', false],
    [{ count: 3 }, 'self.count < 3', false],
    [{ count: 3 }, 'self.count <= 3', true],
    [{ count: 3 }, 'self.count > 2', true],
    [{ count: 3 }, 'self.count >= 4', false],
    [{ count: 3, total: 2 }, 'self.total < self.count', true],
    [{ total: 9007199254740991 }, 'self.total < 9223372036854775807', true],
    [{ count: 3 }, 'self.count == 0x3', true],
  ],
  'compares flags': [
    [{ paused: true }, 'self.paused', true],
    [{}, 'self.paused', false],
    [{}, '!self.paused', true],
    [{}, 'self.paused == false', true],
    [{}, 'self.paused != true', true],
  ],
  'compares durations by their length': [
    [{ wait: '90s' }, "duration(self.wait) == duration('1m30s')", true],
    [{ wait: '90s' }, "duration(self.wait) != duration('1m30s')", false],
    [{ wait: '9s' }, "duration(self.wait) < duration('10s')", true],
    [{ wait: '1.5h' }, "duration(self.wait) > duration('89m')", true],
    [{ wait: '-1s' }, "duration(self.wait) < duration('0s')", true],
    [{ wait: '1.001s' }, "duration(self.wait) == duration('1001ms')", true],
    [{ wait: 'soon' }, "duration(self.wait) < duration('10s')", false],
    [{ wait: 'soon' }, "duration(self.wait) >= duration('10s')", false],
    [{}, "duration('1s') <= duration('1000ms')", true],
  ],
  'joins conditions': [
    [{}, 'true && true', true],
    [{}, 'true && false', false],
    [{}, 'false || true', true],
    [{}, 'false || false', false],
    [{}, 'false && false || true', true],
    [{}, 'false && (false || true)', false],
    [{}, '!(true && false)', true],
    [{}, '!true || !false', true],
    [{ count: 3 }, 'self.count > 1 && self.count < 5 && !self.paused', true],
  ],
  chooses: [
    [{ paused: true }, 'self.paused ? self.count == 3 : false', true],
    [{ paused: false }, 'self.paused ? true : self.count == 4', false],
    [{}, "(self.count > 2 ? 'a' : 'b') == 'a'", true],
    [{ count: 1 }, '(self.count > 2 ? 10 : 20) == 20', true],
    [{}, "has(self.note) ? self.note == 'a' : true", true],
  ],
  measures: [
    [{ note: '' }, 'self.note.size() == 0', true],
    [{ note: 'abc' }, 'size(self.note) == 3', true],
    [{ note: '🚀é' }, 'self.note.size() == 2', true],
    [{ words: ['a', 'b'] }, 'self.words.size() == 2', true],
    [{ words: [] }, 'size(self.words) == 0', true],
    [{ labels: { a: '1', b: '2' } }, 'self.labels.size() == 2', true],
    [{ labels: {} }, 'self.labels.size() > 0', false],
  ],
  'searches texts': [
    [{ note: 'svc:web' }, "self.note.startsWith('svc:')", true],
    [{ note: 'web' }, "self.note.startsWith('svc:')", false],
    [{ note: 'a.example' }, "self.note.endsWith('.example')", true],
    [{ note: 'example' }, "self.note.endsWith('.example')", false],
    [{ note: 'a-b' }, "self.note.contains('-')", true],
    [{ note: 'ab' }, "self.note.contains('-')", false],
    [{ note: 'ab' }, "self.note.contains('')", true],
    [{ note: 'xaby' }, "self.note.matches('a[bc]')", true],
    [{ note: 'xaby' }, "self.note.matches('^a[bc]$')", false],
    [{ note: 'ab"' }, `self.note.matches('^ab"$')`, true],
  ],
  'searches items and keys': [
    [{ mode: 'Fast' }, "self.mode in ['Fast', 'Slow']", true],
    [{ mode: 'Fast' }, "self.mode in ['Slow']", false],
    [{ mode: 'Fast' }, "!(self.mode in ['Slow'])", true],
    [{ words: ['a'] }, "'a' in self.words", true],
    [{ words: [] }, "'a' in self.words", false],
    [{ count: 3 }, 'self.count in [1, 2, 3]', true],
    [{ paused: true }, 'self.paused in [false]', false],
    [{ labels: { a: '1' } }, "'a' in self.labels", true],
    [{ labels: { a: '1' } }, "'1' in self.labels", false],
    [{ labels: {} }, "'toString' in self.labels", false],
  ],
  'tests whether a field exists': [
    [{ note: '' }, 'has(self.note)', true],
    [{}, 'has(self.note)', false],
    [{}, '!has(self.note)', true],
    [{}, 'has(self.mode)', true],
    [{}, 'has(self.limits)', true],
    [{}, 'has(self.limits.high)', false],
    [{ limits: { high: 2 } }, 'has(self.limits.high)', true],
    [{ since: '2026-01-31T12:00:00Z' }, 'has(self.since)', true],
    [{ amount: 1 }, 'has(self.amount)', true],
    [{}, 'has(self.amount)', false],
  ],
  'iterates over lists': [
    [{ words: ['a', 'ab'] }, "self.words.all(w, w.startsWith('a'))", true],
    [{ words: ['a', 'b'] }, "self.words.all(w, w.startsWith('a'))", false],
    [{ words: [] }, 'self.words.all(w, false)', true],
    [{ words: ['a', 'b'] }, "self.words.exists(w, w == 'b')", true],
    [{ words: [] }, 'self.words.exists(w, true)', false],
    [{ words: ['a', 'b'] }, "self.words.exists_one(w, w == 'b')", true],
    [{ words: ['b', 'b'] }, "self.words.exists_one(w, w == 'b')", false],
    [{ ports: [WEB, TLS] }, 'self.ports.filter(p, p.tls).size() == 1', true],
    [{ ports: [WEB, TLS] }, "self.ports.map(p, p.name).exists(n, n == 'tls')", true],
    [{ ports: [WEB, TLS] }, "'web' in self.ports.filter(p, !p.tls).map(p, p.name)", true],
    [{ ports: [WEB, TLS] }, 'self.ports.map(p, p.number).all(n, n in [80, 443])', true],
    [{ ports: [WEB, TLS], words: ['web'] }, 'self.ports.all(p, self.words.exists(w, w == p.name))', false],
    [{ ports: [WEB], words: ['web'] }, 'self.ports.all(p, self.words.exists(w, w == p.name))', true],
    [{}, "['a', 'b'].all(x, x != self.mode)", true],
  ],
  'iterates over the keys of maps': [
    [{ labels: { a: '1' } }, "self.labels.all(k, k == 'a')", true],
    [{ labels: { a: '1', b: '2' } }, "self.labels.all(k, k == 'a')", false],
    [{ labels: { a: '1', b: '2' } }, "self.labels.exists(k, k == 'b')", true],
    [{ labels: { a: '1', b: '2' } }, "self.labels.exists_one(k, k in ['a', 'b'])", false],
    [{ labels: {} }, 'self.labels.all(k, false)', true],
  ],
  'compares sets': [
    [{ words: ['a', 'b'] }, "sets.intersects(self.words, ['b', 'c'])", true],
    [{ words: ['a'] }, "sets.intersects(self.words, ['b', 'c'])", false],
    [{ words: [] }, "sets.intersects(self.words, ['b'])", false],
    [{ ports: [WEB] }, 'sets.intersects(self.ports.map(p, p.number), [80])', true],
  ],
  'reads addresses': [
    [{ note: '100.64.0.1' }, 'isIP(self.note)', true],
    [{ note: 'fd7a:115c:a1e0::1' }, 'isIP(self.note)', true],
    [{ note: '100.64.0' }, 'isIP(self.note)', false],
    [{ note: '::ffff:1.2.3.4' }, 'isIP(self.note)', false],
    [{ note: '100.64.0.0/10' }, 'isCIDR(self.note)', true],
    [{ note: '100.64.0.1/10' }, 'isCIDR(self.note)', true],
    [{ note: 'fd7a:115c:a1e0::/48' }, 'isCIDR(self.note)', true],
    [{ note: '::/0' }, 'isCIDR(self.note)', true],
    [{ note: '100.64.0.1' }, 'isCIDR(self.note)', false],
    [{ note: '100.64.0.0/33' }, 'isCIDR(self.note)', false],
    [{ note: 'fd7a:115c:a1e0::/129' }, 'isCIDR(self.note)', false],
    [{ note: '100.64.0.0/010' }, 'isCIDR(self.note)', false],
    [{ note: '100.64.0.0/' }, 'isCIDR(self.note)', false],
    [{ note: '100.64.0.0/10/10' }, 'isCIDR(self.note)', false],
    [{ note: '100.64.0.0/255.192.0.0' }, 'isCIDR(self.note)', false],
    [{ note: '::ffff:100.64.0.0/106' }, 'isCIDR(self.note)', false],
    [{ note: 'fe80::%eth0/64' }, 'isCIDR(self.note)', false],
    [{ note: 'nowhere' }, 'isCIDR(self.note)', false],
    [{ note: '100.127.255.255' }, "cidr('100.64.0.0/10').containsIP(self.note)", true],
    [{ note: '100.128.0.0' }, "cidr('100.64.0.0/10').containsIP(self.note)", false],
    [{ note: 'fd7a:115c:a1e0::1' }, "cidr('fd7a:115c:a1e0::/48').containsIP(self.note)", true],
    [{ note: '100.64.0.1' }, "cidr('::/0').containsIP(self.note)", false],
    [{ note: 'nowhere' }, "cidr('::/0').containsIP(self.note)", false],
    [{ note: 'nowhere' }, "!cidr('::/0').containsIP(self.note)", false],
  ],
  'fails where a field is missing': [
    [{}, "self.note == 'a'", false],
    [{}, "self.note != 'a'", false],
    [{}, "!(self.note == 'a')", false],
    [{}, 'self.limits.high < 5', false],
    [{}, "has(self.note) && self.note == 'a'", false],
    [{ note: 'a' }, "has(self.note) && self.note == 'a'", true],
    [{}, "!has(self.note) || self.note == 'a'", true],
    [{}, "!(has(self.note) && self.note == 'a')", true],
    [{ ports: [WEB] }, "self.ports.exists(p, p.note == 'a')", false],
    [{ ports: [WEB] }, "self.ports.all(p, !has(p.note) || p.note == 'a')", true],
    [{ ports: [WEB] }, "self.ports.exists_one(p, p.note == 'a')", false],
    [{}, 'has(self.limits.high) || has(self.note)', false],
  ],
  'forgives what cannot be evaluated where the other side decides': [
    [{}, "true || self.note == 'a'", true],
    [{}, "self.note == 'a' || true", true],
    [{}, "self.note == 'a' || !has(self.note)", true],
    [{}, "self.note == 'a' || false", false],
    [{}, "!(false && self.note == 'a')", true],
    [{}, "!(self.note == 'a' && false)", true],
    [{}, "!(self.note == 'a' && true)", false],
    [{ words: ['soon', '2s'] }, "self.words.exists(w, duration(w) == duration('2s'))", true],
    [{ words: ['2s', 'soon'] }, "self.words.exists(w, duration(w) == duration('2s'))", true],
    [{ words: ['soon', '1s'] }, "self.words.exists(w, duration(w) == duration('2s'))", false],
    [{ words: ['soon', '1s'] }, "!self.words.all(w, duration(w) == duration('2s'))", true],
    [{ words: ['soon', '2s'] }, "!self.words.all(w, duration(w) == duration('2s'))", false],
  ],
  'uses the names of the innermost macro': [
    [{ words: ['a'], ports: [WEB] }, "self.words.all(x, self.ports.all(x, x.name == 'web'))", true],
    [{ words: ['a'] }, "self.words.all(self, self == 'a')", true],
    [
      { ports: [{ ...WEB, note: 'b' }, TLS] },
      "self.ports.all(p, !has(p.note) || self.ports.all(p, p.note != 'a'))",
      false,
    ],
    [
      { ports: [{ ...WEB, note: 'b' }, TLS] },
      "self.ports.all(p, self.ports.all(p, !has(p.note) || self.ports.all(p, p.note != 'a')))",
      false,
    ],
    [
      { ports: [WEB], words: ['web'] },
      "self.ports.all(p, self.words.all(w, self.ports.all(w, w.name == p.name && w.name == 'web')))",
      true,
    ],
  ],
  'accepts any name for a variable': [
    [{ words: ['a'] }, "self.words.all(new, new == 'a')", true],
    [{ words: ['a'] }, 'self.words.all(class, class.size() == 1)', true],
    [{ words: ['a'] }, 'self.words.all(codePoints, codePoints.size() == 1)', true],
    [{ words: ['a'] }, "self.words.all(pattern0, pattern0.matches('^a$'))", true],
    [{ words: ['1s'] }, "self.words.all(duration, duration(duration) == duration('1s'))", true],
  ],
};

describe.each(Object.entries(TABLES))('a compiled rule %s', (_sentence, rows) => {
  it.each(rows)('of %j: %s is %s', (fields, rule, outcome) => {
    const self = stored(fields);
    expect(compiledRule(rule, spec)(self)).toBe(outcome);
    expect(interpretedRule(rule)(self), 'by an evaluator that is not ours').toBe(outcome);
  });
});

describe('the constants of compiled rules', () => {
  it('are made once, however many rules use them', () => {
    const rule = "duration(self) < duration('7s')";
    const twice = [
      { rule, message: 'less' },
      { rule: `${rule} || ${rule}`, message: 'or less' },
    ];
    const module = rulesModule(tinyKind({ [specField('wait', 'x-kubernetes-validations')]: twice }));
    expect(module.match(/^const \w+ = duration\("7s"\);$/gm)).toHaveLength(1);
    expect(module.match(/duration\(self\) < duration0/g)).toHaveLength(3);
  });

  it('are shared by the places of one definition: its rules are compiled once', () => {
    const name = 'sample.json#/$defs/NamedPort/properties/name/x-kubernetes-validations';
    const patch = {
      [name]: [{ rule: "self != ''", message: 'name must not be empty' }],
      [specField('port')]: { $ref: '#/$defs/NamedPort' },
    };
    const module = rulesModule(tinyKind(patch));
    expect(module.match(/^const rule\d+ = self => \(self !== ""\);$/gm)).toHaveLength(1);
    const { evaluate, rules } = evaluateValidator(tinyKind(patch));
    const errors: string[] = [];
    const nameless = { name: '', number: 1 };
    evaluate(sample({ port: nameless, ports: [WEB, nameless] }), (index, path) =>
      errors.push(`${path}: ${rules[index]?.message ?? ''}`),
    );
    expect(errors).toEqual([
      'spec.ports[1].name: name must not be empty',
      'spec.port.name: name must not be empty',
    ]);
  });
});
