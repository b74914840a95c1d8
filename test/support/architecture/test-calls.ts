import ts from 'typescript';
import { isTest } from './places.ts';

const GROUPS = ['describe', 'suite'];
const TESTS = ['it', 'test'];

/** Calls that make another `it` rather than a test: it.each(cases)('name', body). */
const MAKERS = ['each', 'extend', 'for', 'runIf', 'skipIf'];

/** Whether a node names a test and gives its body, in whatever form: it(), it.each(cases)(), test.concurrent(). */
export function isTestCall(node: ts.Node): node is ts.CallExpression {
  if (!ts.isCallExpression(node) || !TESTS.includes(rootOf(node))) return false;
  const callee = node.expression;
  return !(ts.isPropertyAccessExpression(callee) && MAKERS.includes(callee.name.text));
}

/** Whether something is given to a describe or an it directly: its body or its options. */
export function isArgumentOfTests(path: string, node: ts.Node): boolean {
  const { parent } = node;
  return isTest(path) && ts.isCallExpression(parent) && [...GROUPS, ...TESTS].includes(rootOf(parent));
}

/** The words behind describe, it and test in a file: only of it.only, each of it.each(cases). */
export function isModifierOfTests(node: ts.Node): node is ts.PropertyAccessExpression {
  return ts.isPropertyAccessExpression(node) && [...GROUPS, ...TESTS].includes(rootOf(node));
}

/** The name at which a chain of calls and members begins: it, of it.skipIf(isSlow).each(cases)(). */
function rootOf(node: ts.Node): string {
  if (ts.isIdentifier(node)) return node.text;
  if (ts.isCallExpression(node) || ts.isPropertyAccessExpression(node)) return rootOf(node.expression);
  return ts.isTaggedTemplateExpression(node) ? rootOf(node.tag) : '';
}
