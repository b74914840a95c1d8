import ts from 'typescript';
import { isTest } from './places.ts';
import { at } from './source.ts';
import type { Source, Violations } from './source.ts';
import { isArgumentOfTests, isModifierOfTests, isTestCall } from './test-calls.ts';

/** All tests run: none is left out, alone or still to be written. What needs a tool asks for it by skipIf or runIf. */
export function allTestsRun(sources: readonly Source[]): Violations {
  return sources
    .filter(({ path }) => isTest(path))
    .flatMap(source =>
      source.nodes
        .filter(node => isModifier(node, source.path) && /^(skip|only|todo)$/.test(node.name.getText()))
        .map(node => at(source, node, `${node.getText()}: let it run, or delete it`)),
    );
}

/** A word behind it (it.only) or an option of it ({ only: true }). */
function isModifier(
  node: ts.Node,
  path: string,
): node is ts.PropertyAccessExpression | ts.PropertyAssignment {
  if (!ts.isPropertyAssignment(node)) return isModifierOfTests(node);
  return node.initializer.kind === ts.SyntaxKind.TrueKeyword && isArgumentOfTests(path, node.parent);
}

/** All tests can fail: each calls expect, or a function whose name begins with expect or assert. */
export function allTestsExpect(sources: readonly Source[]): Violations {
  return sources
    .filter(({ path }) => isTest(path))
    .flatMap(source =>
      source.nodes
        .filter(node => isTestCall(node) && !expects(node))
        .map(node => at(source, node, 'this test expects nothing: assert what must be true')),
    );
}

function expects({ arguments: given }: ts.CallExpression): boolean {
  return given.some(argument => isExpectation(argument) || callsExpectation(argument));
}

function callsExpectation(node: ts.Node): boolean {
  if (ts.isCallExpression(node) && isExpectation(node.expression)) return true;
  return ts.forEachChild(node, child => callsExpectation(child) || undefined) ?? false;
}

/** expect, expectNothing, assert, fc.assert, expect.soft; not a value that is called expected. */
function isExpectation(node: ts.Node): boolean {
  if (ts.isIdentifier(node)) return /^(expect|assert)(?![a-z])/.test(node.text);
  return ts.isPropertyAccessExpression(node) && (isExpectation(node.name) || isExpectation(node.expression));
}
