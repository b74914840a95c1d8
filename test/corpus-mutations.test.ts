import { describe, expect, it } from 'vitest';
import type { Kind } from '../codegen/kind.ts';
import { structureCode } from '../codegen/validator/structure.ts';

import { readCorpus } from './support/schema/corpus.ts';
import type { Case } from './support/schema/corpus.ts';
import { evaluateStructure, evaluateValidator } from './support/schema/evaluate.ts';
import { schemaWithout } from './support/schema/schema-without.ts';
import { demandsOf, nameOf } from './support/schema/demands.ts';
import type { Demand } from './support/schema/demands.ts';
import { productKinds } from './support/schema/product-schemas.ts';

/** An invalid object of the corpus in its stored shape, and what is wrong with it. */
type Refused = Case & {
  readonly shaped: unknown;
  readonly hasStructure: boolean;
  /** The places of the CEL rules that fail. */
  readonly failing: ReadonlySet<string>;
};

const kinds = new Map(productKinds().map(kind => [kind.name, kind]));
const corpus = readCorpus().filter(({ faultAt }) => faultAt !== undefined);
const refused = new Map([...kinds.values()].map(kind => [kind.name, refusedOf(kind)]));

function refusedOf(kind: Kind): readonly Refused[] {
  const { shape, structure, evaluate, rules } = evaluateValidator(kind);
  return corpus
    .filter(one => one.kind === kind.name)
    .map(one => {
      const shaped = shape(one.object);
      const failing = new Set<string>();
      evaluate(shaped, index => failing.add(rules[index]?.message ?? ''));
      return { ...one, shaped, hasStructure: structure(shaped), failing };
    });
}

/** What one line of a schema file demands, at every path where a $ref brings it. */
type Line = { readonly line: string; readonly demands: readonly Demand[] };

function linesOf(all: readonly Demand[]): readonly Line[] {
  const lines = new Map<string, Demand[]>();
  for (const demand of all) {
    const { file, pointer } = demand.by === 'rule' ? demand.rule.place : demand.node.place;
    const line = `${file}#${pointer} ${nameOf(demand).slice(demand.path.length).trim()}`;
    lines.set(line, [...(lines.get(line) ?? []), demand]);
  }
  return [...lines].map(([line, demands]) => ({ line, demands }));
}

/** The first file of the corpus that is accepted once the demands are gone. */
function firstAccepted(demands: readonly Demand[]): string | undefined {
  for (const [name, kind] of kinds) {
    const ours = demands.filter(demand => demand.kind === name);
    const found = ours.length === 0 ? undefined : firstAcceptedOf(kind, ours);
    if (found) return found.file;
  }
  return undefined;
}

function firstAcceptedOf(kind: Kind, demands: readonly Demand[]): Refused | undefined {
  const cases = refused.get(kind.name) ?? [];
  const messages = new Set(demands.flatMap(demand => (demand.by === 'rule' ? [demand.rule.message] : [])));
  if (messages.size > 0)
    return cases.find(one => one.hasStructure && [...one.failing].every(rule => messages.has(rule)));
  const structure = evaluateStructure(structureCode(schemaWithout(kind, demands)));
  return cases.find(one => !one.hasStructure && one.failing.size === 0 && structure(one.shaped));
}

describe('deleting one line of the schema makes the corpus fail', () => {
  const all = [...kinds.values()].flatMap(demandsOf);

  it.each(linesOf(all))('$line', ({ demands }) => {
    expect(firstAccepted(demands)).toBeDefined();
  });
});
