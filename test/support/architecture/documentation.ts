import ts from 'typescript';
import { isGenerated, isProduct } from './places.ts';
import { at, hasModifier } from './source.ts';
import type { Source, Violations } from './source.ts';

/** Each exported function, class and interface of the product says in a comment what it promises. */
export function documentedExports(sources: readonly Source[]): Violations {
  return sources
    .filter(({ path }) => isProduct(path) && !isGenerated(path))
    .flatMap(source => {
      const undocumented = source.nodes.filter(
        node => isExportedPromise(node) && !hasDocComment(source, node),
      );
      return undocumented.map(node =>
        at(source, node, 'is exported without a comment: say in a sentence what it promises'),
      );
    });
}

function isExportedPromise(node: ts.Node): boolean {
  if (!hasModifier(node, ts.SyntaxKind.ExportKeyword)) return false;
  if (ts.isVariableStatement(node)) {
    return node.declarationList.declarations.some(
      ({ initializer }) =>
        initializer && (ts.isArrowFunction(initializer) || ts.isFunctionExpression(initializer)),
    );
  }
  return ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node) || ts.isInterfaceDeclaration(node);
}

function hasDocComment({ text }: Source, node: ts.Node): boolean {
  const comments = ts.getLeadingCommentRanges(text, node.getFullStart()) ?? [];
  return comments.some(({ pos }) => text.startsWith('/**', pos));
}
