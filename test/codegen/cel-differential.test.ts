import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Node, Rule } from '../../codegen/kind.ts';
import { walk } from '../../codegen/walk.ts';
import { compiledRule, interpretedRule } from '../support/codegen/cel.ts';
import { productKinds } from '../support/schema/product-schemas.ts';
import { arbitrarySelf } from '../support/codegen/cel-values.ts';
import { specField, tinyKind } from '../support/codegen/tiny-schema.ts';

/** Each rule of the product once, and a node that it is about. */
function productRules(): readonly (readonly [string, Rule, Node])[] {
  const nodes = productKinds().flatMap(kind => walk(kind.root));
  const found = nodes.flatMap(({ node }) =>
    node.rules.map(rule => [`${rule.place.file}#${rule.place.pointer}`, rule, node] as const),
  );
  return [...new Map(found.map(entry => [entry[0], entry])).values()];
}

describe('our compiler and an evaluator that is not ours agree on every rule of the schema', () => {
  it.each(productRules())('%s', (_place, { rule }, node) => {
    const [compiled, interpreted] = [compiledRule(rule, node), interpretedRule(rule)];
    const seen = new Set<boolean>();
    const agrees = fc.property(arbitrarySelf(node, rule), self => {
      const outcome = compiled(self);
      seen.add(outcome);
      expect(outcome).toBe(interpreted(self));
    });
    fc.assert(agrees, { seed: 1, numRuns: 400 });
    expect(seen, 'the values make it hold and fail').toEqual(new Set([true, false]));
  });

  it('of which there are some in every kind that has spec of its own', () => {
    expect(productRules().length).toBeGreaterThan(30);
  });
});

const kind = tinyKind({
  'sample.json#/$defs/NamedPort/properties/note': { description: 'A text.', type: 'string', maxLength: 8 },
  [specField('note', 'maxLength')]: 64,
});
const spec: Node = kind.root.fields['spec'] ?? kind.root;

/** Conditions about a spec; some cannot be evaluated where a field is missing or a text is no duration. */
const ATOMS = fc.constantFrom(
  'self.paused',
  'has(self.note)',
  "self.note == 'a'",
  "self.note != 'a'",
  'self.note.size() == 1',
  "self.mode == 'Fast'",
  'self.count > 2',
  'self.count in [1, 2]',
  'has(self.limits.high)',
  'self.limits.high < self.limits.low',
  "duration(self.note) > duration('1s')",
  "'a' in self.words",
  'self.words.size() == 0',
  "self.labels.all(k, k != 'a')",
  "sets.intersects(self.words, ['a', 'b'])",
);

/** Conditions about one port, which macros bind to `p`. */
const PORT_ATOMS = fc.constantFrom(
  "p.name == 'a'",
  'has(p.note)',
  "p.note == 'a'",
  'p.number > 2',
  'p.name in self.words',
  'self.ports.exists(q, q.name == p.name && q.number > p.number)',
  "self.ports.all(p, p.note != 'a')",
  "self.words.exists(p, p == 'a')",
);

function combined(atoms: Arbitrary<string>): Arbitrary<string> {
  const { rule } = fc.letrec<{ readonly rule: string }>(tie => ({
    rule: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      atoms,
      fc.tuple(tie('rule'), tie('rule')).map(([left, right]) => `(${left} && ${right})`),
      fc.tuple(tie('rule'), tie('rule')).map(([left, right]) => `(${left} || ${right})`),
      fc.tuple(tie('rule'), tie('rule'), tie('rule')).map(([test, yes, no]) => `(${test} ? ${yes} : ${no})`),
      tie('rule').map(inner => `!(${inner})`),
    ),
  }));
  return rule;
}

const MACROS = fc
  .tuple(fc.constantFrom('all', 'exists', 'exists_one'), combined(PORT_ATOMS))
  .map(([macro, body]) => `self.ports.${macro}(p, ${body})`);

describe('our compiler and an evaluator that is not ours agree', () => {
  it('on rules made at random', () => {
    const rules = combined(fc.oneof({ weight: 3, arbitrary: ATOMS }, { weight: 1, arbitrary: MACROS }));
    const cases = rules.chain(rule => fc.tuple(fc.constant(rule), arbitrarySelf(spec, rule)));
    const agrees = fc.property(cases, ([rule, self]) => {
      expect(compiledRule(rule, spec)(self), rule).toBe(interpretedRule(rule)(self));
    });
    fc.assert(agrees, { seed: 1, numRuns: 2000 });
  });
});
