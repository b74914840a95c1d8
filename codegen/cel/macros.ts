import type { ASTNode } from '@marcbachmann/cel-js';
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

/** `list.all(item, condition)` and its kin; on a map they go over the keys. */
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
  const js = variable.args;
  const names = new Map([...scope.names, [js, { js, type: item }]]);
  const { js: result, type } = compile(body, { ...scope, names });
  const test = () => conditionOf({ js: result, type });
  const items = on.type.is === 'map' ? `Object.keys(${on.js})` : on.js;
  switch (name) {
    case 'all':
      return { js: `${items}.every(${js} => ${test()})`, type: BOOL };
    case 'exists':
      return { js: `${items}.some(${js} => ${test()})`, type: BOOL };
    case 'exists_one':
      return { js: `(${items}.filter(${js} => ${test()}).length === 1)`, type: BOOL };
    case 'filter':
      return { js: `${items}.filter(${js} => ${test()})`, type: { is: 'list', of: item } };
    case 'map':
      return { js: `${items}.map(${js} => ${result})`, type: { is: 'list', of: type } };
  }
}

function itemOf({ type }: Compiled): CelType {
  if (type.is === 'list') return type.of;
  if (type.is === 'map') return STRING;
  throw new Unsupported(`goes over ${describe(type)}, which is neither list nor map`);
}
