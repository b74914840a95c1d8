import ts from 'typescript';
import { isCompositionRoot, isTest } from './places.ts';
import { at } from './source.ts';
import type { Source, Violations } from './source.ts';

/** Settings come in as arguments: only composition roots read the environment. */
export function environmentInRoots(sources: readonly Source[]): Violations {
  return sources
    .filter(({ path }) => !isTest(path) && !isCompositionRoot(path))
    .flatMap(source =>
      source.nodes
        .filter(readsEnvironment)
        .map(node =>
          at(
            source,
            node,
            'reads the environment: only composition roots do; take the setting as an argument',
          ),
        ),
    );
}

/** process.env, process['env'], { env } of process, and the import of node:process. */
function readsEnvironment(node: ts.Node): boolean {
  if (ts.isPropertyAccessExpression(node)) return node.name.text === 'env' && isProcess(node.expression);
  if (ts.isElementAccessExpression(node)) return isProcess(node.expression);
  if (ts.isVariableDeclaration(node)) return node.initializer !== undefined && isProcess(node.initializer);
  return ts.isImportDeclaration(node) && /^['"](node:)?process['"]$/.test(node.moduleSpecifier.getText());
}

function isProcess(node: ts.Expression): boolean {
  return /^(globalThis\.)?process$/.test(node.getText());
}
