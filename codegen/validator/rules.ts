import { compileRule } from '../cel/compile.ts';
import { Constants, Unsupported } from '../cel/scope.ts';
import { celTypeOf } from '../cel/type.ts';
import type { Node, Rule, Whole } from '../kind.ts';
import { below, Refusal } from '../refusal.ts';
import { fileOf, GENERATED_UNTYPED, importLine, indented } from '../text.ts';

/** The module that evaluates the CEL rules of a kind, compiled to JavaScript, and reports the ones that fail. */
export function rulesModule(kind: Whole): string {
  const constants = new Constants();
  const rules = new RuleTable(constants);
  const walker = visit(kind.root, 'root', '', rules, 0);
  const helpers = ['holds', 'isRecord'].filter(name => walker.some(line => line.includes(`${name}(`)));
  return fileOf(
    [GENERATED_UNTYPED],
    importLine([...constants.imports(), ...helpers].sort(), '../validation/validator-functions.ts'),
    constants.declarations(),
    rules.declarations(),
    ['export function evaluate(root, report) {', ...indented(walker), '}'],
    ['export const rules = [', ...indented(rules.descriptions().map(line => `${line},`)), '];'],
  );
}

/** The rules so far, each compiled once even if several fields use its schema. */
class RuleTable {
  readonly #constants: Constants;
  readonly #rules = new Map<string, { readonly name: string; readonly js: string; readonly rule: Rule }>();

  constructor(constants: Constants) {
    this.#constants = constants;
  }

  /** The index of a rule of this node. */
  indexOf(rule: Rule, node: Node): number {
    const id = `${rule.place.file}#${rule.place.pointer}`;
    if (!this.#rules.has(id)) {
      const js = compiled(rule, node, this.#constants);
      this.#rules.set(id, { name: `rule${this.#rules.size}`, js, rule });
    }
    return [...this.#rules.keys()].indexOf(id);
  }

  /** Each rule as a function, under the CEL that it was compiled from. */
  declarations(): readonly string[] {
    return [...this.#rules.values()].flatMap(({ name, js, rule }) => [
      `// ${rule.rule.replaceAll('\n', ' ')}`,
      `const ${name} = self => ${js};`,
    ]);
  }

  /** The message of each rule. */
  descriptions(): readonly string[] {
    return [...this.#rules.values()].map(({ rule: { message, fieldPath } }) =>
      JSON.stringify({ message, fieldPath: fieldPath ?? '' }),
    );
  }
}

function compiled(rule: Rule, node: Node, constants: Constants): string {
  const place = below(rule.place, 'rule');
  try {
    return compileRule(rule.rule, celTypeOf(node), constants);
  } catch (error) {
    if (error instanceof Unsupported) throw new Refusal(place, error.message);
    throw error;
  }
}

/** The lines that evaluate the rules of a node and of those below; `value` and `path` are JavaScript. */
function visit(node: Node, value: string, path: string, rules: RuleTable, depth: number): readonly string[] {
  const own = node.rules.map(rule => {
    const index = rules.indexOf(rule, node);
    return `if (!holds(rule${index}, ${value})) report(${index}, \`${path}\`);`;
  });
  const nested = visitBelow(node, value, path, rules, depth);
  return [...own, ...nested];
}

function visitBelow(
  node: Node,
  value: string,
  path: string,
  rules: RuleTable,
  depth: number,
): readonly string[] {
  switch (node.is) {
    case 'object':
      return guarded(`isRecord(${value})`, visitFields(node, value, path, rules, depth));
    case 'list': {
      const [index, item] = [`index${depth}`, `item${depth}`];
      const inner = visit(node.items, item, `${path}[\${${index}}]`, rules, depth + 1);
      const loop = `for (const [${index}, ${item}] of ${value}.entries()) {`;
      return inner.length === 0 ? [] : guarded(`Array.isArray(${value})`, [loop, ...indented(inner), '}']);
    }
    case 'map':
    case 'text':
    case 'integer':
    case 'boolean':
    case 'int-or-string':
      return [];
  }
}

function visitFields(
  node: Extract<Node, { is: 'object' }>,
  value: string,
  path: string,
  rules: RuleTable,
  depth: number,
): readonly string[] {
  return Object.entries(node.fields).flatMap(([name, field]) => {
    const inner = visit(field, `${value}.${name}`, path === '' ? name : `${path}.${name}`, rules, depth);
    return inner.length === 0 ? [] : guarded(`${value}.${name} !== undefined`, inner);
  });
}

function guarded(condition: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [`if (${condition}) {`, ...indented(lines), '}'];
}
