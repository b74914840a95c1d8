import { describe, expect, it } from 'vitest';
import type { Kind } from '../codegen/kind.ts';

import { readCorpus } from './support/schema/corpus.ts';
import type { Case } from './support/schema/corpus.ts';
import { evaluateValidator } from './support/schema/evaluate.ts';
import { nodeChecks } from './support/schema/node-checks.ts';
import type { NodeChecks } from './support/schema/node-checks.ts';
import { constraintsOf, nameOf } from './support/schema/constraints.ts';
import type { Constraint } from './support/schema/constraints.ts';
import { productKinds } from './support/schema/product-schemas.ts';

/** An invalid object of the corpus in its stored shape, and what is wrong with it. */
type Refused = Case & {
  readonly shaped: unknown;
  /** The paths of the values that fail the structure check. */
  readonly failingPaths: ReadonlySet<string>;
  /** The places of the CEL rules that fail. */
  readonly failing: ReadonlySet<string>;
};

const kinds = new Map(productKinds().map(kind => [kind.name, kind]));
const checks = new Map([...kinds].map(([name, kind]) => [name, nodeChecks(kind)]));
const corpus = readCorpus();
const refused = new Map([...kinds.values()].map(kind => [kind.name, refusedOf(kind)]));

function checksOf({ name }: Kind): NodeChecks {
  const found = checks.get(name);
  if (!found) throw new Error(`no checks of ${name}`);
  return found;
}

function refusedOf(kind: Kind): readonly Refused[] {
  const { shape, evaluate, rules } = evaluateValidator(kind);
  return corpus
    .filter(one => one.kind === kind.name && one.faultAt !== undefined)
    .map(one => {
      const shaped = shape(one.object);
      const failing = new Set<string>();
      evaluate(shaped, index => failing.add(rules[index]?.message ?? ''));
      return { ...one, shaped, failingPaths: checksOf(kind).failing(shaped), failing };
    });
}

/** The constraints of one line of a schema file, at every path that refers to it. */
type Line = { readonly line: string; readonly constraints: readonly Constraint[] };

function linesOf(all: readonly Constraint[]): readonly Line[] {
  const lines = new Map<string, Constraint[]>();
  for (const constraint of all) {
    const { file, pointer } = constraint.by === 'rule' ? constraint.rule.place : constraint.node.place;
    const line = `${file}#${pointer} ${nameOf(constraint).slice(constraint.path.length).trim()}`;
    lines.set(line, [...(lines.get(line) ?? []), constraint]);
  }
  return [...lines].map(([line, constraints]) => ({ line, constraints }));
}

/** The first file of the corpus that is accepted once the constraints are removed. */
function firstAccepted(constraints: readonly Constraint[]): string | undefined {
  for (const [name, kind] of kinds) {
    const ours = constraints.filter(constraint => constraint.kind === name);
    const found = ours.length === 0 ? undefined : firstAcceptedOf(kind, ours);
    if (found) return found.file;
  }
  return undefined;
}

function firstAcceptedOf(kind: Kind, constraints: readonly Constraint[]): Refused | undefined {
  const cases = refused.get(kind.name) ?? [];
  const messages = new Set(
    constraints.flatMap(constraint => (constraint.by === 'rule' ? [constraint.rule.message] : [])),
  );
  if (messages.size > 0)
    return cases.find(
      one => one.failingPaths.size === 0 && [...one.failing].every(rule => messages.has(rule)),
    );
  const paths = new Set(constraints.map(({ path }) => path));
  const passes = checksOf(kind).without(constraints);
  return cases.find(
    one =>
      one.failingPaths.size > 0 &&
      [...one.failingPaths].every(path => paths.has(path)) &&
      one.failing.size === 0 &&
      passes(one.shaped),
  );
}

it.each([...kinds.values()])('the checks of single nodes of $name are its structure check', kind => {
  const { shape, structure } = evaluateValidator(kind);
  const cases = corpus
    .filter(one => one.kind === kind.name)
    .map(one => ({ ...one, shaped: shape(one.object) }));
  const differing = cases.filter(
    ({ shaped }) => structure(shaped) !== (checksOf(kind).failing(shaped).size === 0),
  );
  expect(differing.map(({ file }) => file)).toEqual([]);
});

describe('deleting one line of the schema makes the corpus fail', () => {
  const all = [...kinds.values()].flatMap(constraintsOf);

  it.each(linesOf(all))('$line', ({ constraints }) => {
    expect(firstAccepted(constraints)).toBeDefined();
  });
});
