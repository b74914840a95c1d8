import { parse } from '@marcbachmann/cel-js';
import type { ASTNode } from '@marcbachmann/cel-js';
import { compileFunction } from './functions.ts';
import { compileMacro, isMacro } from './macros.ts';
import { anyMayFail, compileEquality, compileLogic, compileMembership, compileOrder } from './operators.ts';
import { conditionOf, Unsupported } from './scope.ts';
import type { Compiled, Constants, Scope } from './scope.ts';
import { BOOL, celTypeOf, describe, INT, STRING } from './type.ts';
import type { CelType } from './type.ts';

/** Compiles a rule about `self` to a JavaScript expression that is true where the rule holds. */
export function compileRule(rule: string, self: CelType, constants: Constants): string {
  const names = new Map([['self', { js: 'self', type: self, mayFail: false }]]);
  return conditionOf(compile(parsed(rule), { names, constants, present: new Set(), depth: 1 }));
}

function parsed(rule: string): ASTNode {
  try {
    return parse(rule).ast;
  } catch (error) {
    throw new Unsupported(error instanceof Error ? error.message : 'does not parse');
  }
}

function compile(ast: ASTNode, scope: Scope): Compiled {
  switch (ast.op) {
    case 'value':
      return compileLiteral(ast.args);
    case 'id':
      return compileName(ast.args, scope);
    case '.':
      return compileField(compile(ast.args[0], scope), ast.args[1], scope);
    case 'list':
      return compileList(ast.args.map(item => compile(item, scope)));
    case 'call':
      return compileCall(ast.args[0], ast.args[1], scope);
    case 'rcall':
      return compileReceiverCall(ast.args[0], ast.args[1], ast.args[2], scope);
    case '&&':
    case '||': {
      const [left, right] = ast.args;
      const present = new Set([...scope.present, ...provenFields(left, ast.op === '&&', scope)]);
      return compileLogic(
        ast.op,
        compile(left, scope),
        compile(right, { ...scope, present }),
        scope.constants,
      );
    }
    case '!_':
      return compileNot(compile(ast.args, scope));
    case '?:':
      return compileChoice(ast.args, scope);
    case '==':
    case '!=':
      return compileEquality(ast.op, compile(ast.args[0], scope), compile(ast.args[1], scope));
    case '<':
    case '<=':
    case '>':
    case '>=':
      return compileOrder(ast.op, compile(ast.args[0], scope), compile(ast.args[1], scope));
    case 'in':
      return compileMembership(compile(ast.args[0], scope), compile(ast.args[1], scope));
    default:
      throw new Unsupported(`uses "${ast.op}", which has no JavaScript form in codegen/cel yet`);
  }
}

function compileNot(operand: Compiled): Compiled {
  return { js: `!${conditionOf(operand)}`, type: BOOL, mayFail: operand.mayFail };
}

function compileLiteral(value: unknown): Compiled {
  if (typeof value === 'string') return { js: JSON.stringify(value), type: STRING, mayFail: false };
  if (typeof value === 'bigint') return { js: String(value), type: INT, mayFail: false };
  if (typeof value === 'boolean') return { js: String(value), type: BOOL, mayFail: false };
  throw new Unsupported(
    `uses the literal ${String(value)}: only texts, integers, true and false have a form`,
  );
}

function compileName(name: string, scope: Scope): Compiled {
  const found = scope.names.get(name);
  if (!found) throw new Unsupported(`uses "${name}", which is not in scope`);
  return found;
}

/** An optional field is an error in CEL where it is absent; so it is here. */
function compileField(from: Compiled, name: string, scope: Scope): Compiled {
  const { field, isAlwaysThere } = fieldOf(from, name);
  const js = `${from.js}.${name}`;
  if (isAlwaysThere || scope.present.has(js)) return { js, type: field, mayFail: from.mayFail };
  return {
    js: `(${js} ?? ${scope.constants.use('absent')}(${JSON.stringify(name)}))`,
    type: field,
    mayFail: true,
  };
}

function fieldOf(from: Compiled, name: string): { field: CelType; isAlwaysThere: boolean } {
  const fields = from.type.is === 'object' ? from.type.node.fields : {};
  const node = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (!node || from.type.is !== 'object') {
    throw new Unsupported(`uses "${name}", which ${describe(from.type)} does not have`);
  }
  const isAlwaysThere = from.type.node.required.includes(name) || node.default !== undefined;
  return { field: celTypeOf(node), isAlwaysThere };
}

function compileList(items: readonly Compiled[]): Compiled {
  const [first] = items;
  if (!first) throw new Unsupported('uses an empty list');
  if (items.some(item => item.type.is !== first.type.is)) throw new Unsupported('uses a list of mixed types');
  return {
    js: `[${items.map(item => item.js).join(', ')}]`,
    type: { is: 'list', of: first.type },
    mayFail: anyMayFail(...items),
  };
}

function compileCall(name: string, args: readonly ASTNode[], scope: Scope): Compiled {
  const [only] = args;
  if (name === 'has' && only?.op === '.') return compileHas(compile(only.args[0], scope), only.args[1]);
  return compileFunction(
    name,
    args.map(arg => compile(arg, scope)),
    'function',
    scope.constants,
  );
}

function compileHas(from: Compiled, name: string): Compiled {
  fieldOf(from, name);
  return { js: `(${from.js}.${name} !== undefined)`, type: BOOL, mayFail: from.mayFail };
}

/** The fields, as JavaScript, that has() has found wherever this expression has the given outcome. */
function provenFields(ast: ASTNode, outcome: boolean, scope: Scope): readonly string[] {
  if (ast.op === '!_') return provenFields(ast.args, !outcome, scope);
  if (ast.op === (outcome ? '&&' : '||')) {
    const [left, right] = ast.args;
    const proven = provenFields(left, outcome, scope);
    const present = new Set([...scope.present, ...proven]);
    return [...proven, ...provenFields(right, outcome, { ...scope, present })];
  }
  const field = outcome && ast.op === 'call' && ast.args[0] === 'has' ? ast.args[1][0] : undefined;
  return field?.op === '.' ? [`${compile(field.args[0], scope).js}.${field.args[1]}`] : [];
}

function compileReceiverCall(name: string, on: ASTNode, args: readonly ASTNode[], scope: Scope): Compiled {
  if (isMacro(name)) return compileMacro(name, compile(on, scope), args, scope, compile);
  const compiled = args.map(arg => compile(arg, scope));
  const isNamespace = on.op === 'id' && !scope.names.has(on.args);
  return isNamespace
    ? compileFunction(`${on.args}.${name}`, compiled, 'function', scope.constants)
    : compileFunction(name, [compile(on, scope), ...compiled], 'method', scope.constants);
}

function compileChoice(
  [test, then, otherwise]: readonly [ASTNode, ASTNode, ASTNode],
  scope: Scope,
): Compiled {
  const [yes, no] = [compile(then, scope), compile(otherwise, scope)];
  if (yes.type.is !== no.type.is) throw new Unsupported('chooses between two types');
  const tested = compile(test, scope);
  const js = `(${conditionOf(tested)} ? ${yes.js} : ${no.js})`;
  return { js, type: yes.type, mayFail: anyMayFail(tested, yes, no) };
}
