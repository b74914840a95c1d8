import { Environment } from '@marcbachmann/cel-js';
import type { ASTNode } from '@marcbachmann/cel-js';
import { isIP, isCIDR } from '../../api/validation/validator-functions.ts';
import { isRecord } from '../../api/json.ts';
import { patternOf } from './pattern.ts';
import { propertyOf, valuesOf } from './schema.ts';
import type { Schema } from './schema.ts';

/** Whether a rule holds for a value, or that it cannot be evaluated here. */
type Verdict = 'holds' | 'fails' | 'unknown';

type Judge = (self: unknown) => Verdict;

const judges = new Map<string, Judge | undefined>();

/** A rule of a CRD, compiled once; undefined for one that cannot be evaluated here. */
export function judgeOf(rule: string): Judge | undefined {
  if (!judges.has(rule)) judges.set(rule, compiled(rule));
  return judges.get(rule);
}

function compiled(rule: string): Judge | undefined {
  try {
    const evaluate = KUBERNETES.parse(renamed(rule));
    if (!evaluate.check().valid) return undefined;
    return self => {
      try {
        return evaluate({ self }) === true ? 'holds' : 'fails';
      } catch (error) {
        return isFailure(error) ? 'fails' : 'unknown';
      }
    };
  } catch {
    return undefined;
  }
}

/** As in the API server, a rule about what is not there, or is of another form, fails. */
function isFailure(error: unknown): boolean {
  return isRecord(error) && FAILURES.includes(String(error['code']));
}

const FAILURES = [
  'no_such_key',
  'index_out_of_range',
  'index_out_of_bounds',
  'invalid_duration',
  'invalid_timestamp',
];

/** The library's own has() takes no items of lists, and its matches() has the syntax of JavaScript. */
const NAMES: Readonly<Partial<Record<string, string>>> = {
  'has(': 'exist(',
  '.matches(': '.matchesAsInRE2(',
};

/** A rule with our functions in the place of the library's; what is in quotes stays. */
function renamed(rule: string): string {
  return rule.replace(
    /r?("""[^]*?"""|'''[^]*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\bhas\(|\.matches\(/g,
    found => NAMES[found] ?? found,
  );
}

/** Stands for the namespace `sets`, as the library has no functions with dots in their names. */
class Sets {
  contains(list: readonly unknown[], part: readonly unknown[]): boolean {
    return part.every(each => list.includes(each));
  }
  intersects(list: readonly unknown[], other: readonly unknown[]): boolean {
    return other.some(each => list.includes(each));
  }
}

/** CEL with the functions of Kubernetes that rules of Gateway API and Envoy Gateway use, and some of their kin. */
const KUBERNETES = new Environment()
  .registerVariable('self', 'dyn')
  .registerType('Sets', Sets)
  .registerConstant('sets', 'Sets', new Sets())
  .registerFunction('exist(ast): bool', presence)
  .registerFunction('string.matchesAsInRE2(string): bool', (text: string, pattern: string) =>
    patternOf(pattern).test(text),
  )
  .registerFunction('isIP(string): bool', isIP)
  .registerFunction('isCIDR(string): bool', isCIDR)
  .registerFunction('isURL(string): bool', (text: string) => URL.canParse(text))
  .registerFunction('Sets.contains(list, list): bool', (sets: Sets, one: unknown[], other: unknown[]) =>
    sets.contains(one, other),
  )
  .registerFunction('Sets.intersects(list, list): bool', (sets: Sets, one: unknown[], other: unknown[]) =>
    sets.intersects(one, other),
  );

/** has() of the field of any value. */
function presence({ args }: { readonly args: readonly ASTNode[] }): Macro {
  const [field] = args;
  return {
    typeCheck: (checker, _macro, context) => {
      if (field?.op !== '.') throw new TypeError('has() takes a field');
      checker.check(field.args[0], context);
      return checker.getType('bool');
    },
    evaluate: (evaluator, _macro, context) => {
      if (field?.op !== '.') return false;
      const [object, name] = field.args;
      const value = evaluator.run(object, context);
      return isRecord(value) && Object.hasOwn(value, name);
    },
  };
}

/** How the library calls a function that gets its arguments before they are evaluated. */
type Macro = {
  readonly typeCheck: (checker: Checker, macro: unknown, context: unknown) => unknown;
  readonly evaluate: (evaluator: Evaluator, macro: unknown, context: unknown) => boolean;
};

type Checker = {
  readonly check: (node: ASTNode, context: unknown) => unknown;
  readonly getType: (name: string) => unknown;
};

type Evaluator = { readonly run: (node: ASTNode, context: unknown) => unknown };

/** A stored value for rules: whole numbers are integers of CEL, and fields have the names by which rules know them. */
export function celValue(value: unknown, schema: Schema | undefined): unknown {
  if (typeof value === 'number')
    return schema?.type !== 'number' && Number.isInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(item => celValue(item, schema?.items));
  if (!isRecord(value)) return value;
  const values = schema && valuesOf(schema);
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) =>
      values
        ? [name, celValue(inner, values)]
        : [celName(name), celValue(inner, schema && propertyOf(schema, name))],
    ),
  );
}

const KEYWORDS = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);

/** How rules write the name of a field. */
export function celName(name: string): string {
  if (KEYWORDS.has(name)) return `__${name}__`;
  return name
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__');
}
