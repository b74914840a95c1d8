import type { ASTNode } from '@marcbachmann/cel-js';
import { anyMayFail } from './operators.ts';
import { conditionOf, Unsupported } from './scope.ts';
import type { Compiled, Scope } from './scope.ts';
import { BOOL, describe, STRING } from './type.ts';
import type { CelType } from './type.ts';

const MACROS = ['all', 'exists', 'exists_one', 'filter', 'map'] as const;
type Macro = (typeof MACROS)[number];

/** Whether a method name is a macro, whose last argument sees one item at a time. */
export function isMacro(name: string): name is Macro {
  return MACROS.some(macro => macro === name);
}

/** `list.all(item, condition)` and the other macros; on a map they iterate over the keys. */
export function compileMacro(
  name: Macro,
  on: Compiled,
  args: readonly ASTNode[],
  scope: Scope,
  compile: (ast: ASTNode, scope: Scope) => Compiled,
): Compiled {
  const [variable, body] = args;
  if (args.length !== 2 || variable?.op !== 'id' || !body)
    throw new Unsupported(`uses ${name}() with wrong arguments`);
  const item = itemOf(on);
  // A new name, because the name in the rule may be a JavaScript keyword, one of our functions, or hide an outer
  // variable.
  const js = `$${scope.depth}`;
  const names = new Map([...scope.names, [variable.args, { js, type: item, mayFail: false }]]);
  const compiled = compile(body, { ...scope, names, depth: scope.depth + 1 });
  const items = on.type.is === 'map' ? `Object.keys(${on.js})` : on.js;
  const each = `${js} => ${compiled.js}`;
  const mayFail = anyMayFail(on, compiled);
  switch (name) {
    case 'all':
    case 'exists': {
      conditionOf(compiled);
      const method = name === 'all' ? 'every' : 'some';
      const call = compiled.mayFail
        ? `${scope.constants.use(method)}(${items}, ${each})`
        : `${items}.${method}(${each})`;
      return { js: call, type: BOOL, mayFail };
    }
    case 'exists_one':
      conditionOf(compiled);
      return { js: `(${items}.filter(${each}).length === 1)`, type: BOOL, mayFail };
    case 'filter':
      conditionOf(compiled);
      return { js: `${items}.filter(${each})`, type: { is: 'list', of: item }, mayFail };
    case 'map':
      return { js: `${items}.map(${each})`, type: { is: 'list', of: compiled.type }, mayFail };
  }
}

function itemOf({ type }: Compiled): CelType {
  if (type.is === 'list') return type.of;
  if (type.is === 'map') return STRING;
  throw new Unsupported(`goes over ${describe(type)}, which is neither list nor map`);
}
