import { conditionOf, Unsupported } from './scope.ts';
import type { Compiled, Constants } from './scope.ts';
import { BOOL, describe } from './type.ts';

const COMPARABLE = ['string', 'int', 'bool', 'duration'];

/** `==` and `!=` between two values of one scalar type. */
export function compileEquality(op: '==' | '!=', left: Compiled, right: Compiled): Compiled {
  if (left.type.is !== right.type.is || !COMPARABLE.includes(left.type.is)) throw mixed(op, left, right);
  return { js: `(${left.js} ${op}= ${right.js})`, type: BOOL, mayFail: anyMayFail(left, right) };
}

/** `<`, `<=`, `>` and `>=`; texts are left out, because JavaScript orders them by UTF-16 and CEL by code point. */
export function compileOrder(op: string, left: Compiled, right: Compiled): Compiled {
  const isOrdered = left.type.is === 'int' || left.type.is === 'duration';
  if (left.type.is !== right.type.is || !isOrdered) throw mixed(op, left, right);
  return { js: `(${left.js} ${op} ${right.js})`, type: BOOL, mayFail: anyMayFail(left, right) };
}

/** `in`: an item of a list, or a key of a map. */
export function compileMembership(item: Compiled, of: Compiled): Compiled {
  if (of.type.is === 'map' && item.type.is === 'string') {
    return { js: `Object.hasOwn(${of.js}, ${item.js})`, type: BOOL, mayFail: anyMayFail(of, item) };
  }
  const isListOfSame = of.type.is === 'list' && of.type.of.is === item.type.is;
  if (!isListOfSame || !COMPARABLE.includes(item.type.is)) throw mixed('in', item, of);
  return { js: `${of.js}.includes(${item.js})`, type: BOOL, mayFail: anyMayFail(of, item) };
}

/** `&&` and `||`: where the left side may fail, the right side may still decide. */
export function compileLogic(
  op: '&&' | '||',
  left: Compiled,
  right: Compiled,
  constants: Constants,
): Compiled {
  const [a, b] = [conditionOf(left), conditionOf(right)];
  const mayFail = anyMayFail(left, right);
  if (!left.mayFail) return { js: `(${a} ${op} ${b})`, type: BOOL, mayFail };
  const helper = constants.use(op === '&&' ? 'both' : 'either');
  return { js: `${helper}(() => ${a}, () => ${b})`, type: BOOL, mayFail };
}

/** Whether an expression made of these may fail. */
export function anyMayFail(...parts: readonly Compiled[]): boolean {
  return parts.some(part => part.mayFail);
}

function mixed(op: string, left: Compiled, right: Compiled): Unsupported {
  return new Unsupported(`uses "${op}" between ${describe(left.type)} and ${describe(right.type)}`);
}
