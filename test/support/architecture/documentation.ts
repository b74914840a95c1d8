import { posix } from 'node:path';
import ts from 'typescript';
import { importsOf } from './imports.ts';
import { isGenerated, isProduct } from './places.ts';
import { at, hasModifier } from './source.ts';
import type { Source, Violations } from './source.ts';

/** What another folder imports (a function, a class, an interface) states its contract in a comment. */
export function documentedExports(sources: readonly Source[]): Violations {
  const imported = importedElsewhere(sources);
  return sources
    .filter(({ path }) => isProduct(path) && !isGenerated(path))
    .flatMap(source => {
      const undocumented = source.nodes.filter(
        node =>
          isExportedPromise(node) &&
          ['*', ...namesOf(node)].some(name => imported.has(`${source.path}#${name}`)) &&
          !hasDocComment(source, node),
      );
      return undocumented.map(node =>
        at(source, node, 'is exported without a comment: write its contract in one sentence'),
      );
    });
}

/** Each `file#name` that a file of the product in another folder imports. */
function importedElsewhere(sources: readonly Source[]): ReadonlySet<string> {
  return new Set(
    sources
      .filter(({ path }) => isProduct(path))
      .flatMap(source =>
        importsOf(source).flatMap(found =>
          'file' in found && posix.dirname(found.file) !== posix.dirname(source.path)
            ? found.names.map(name => `${found.file}#${name}`)
            : [],
        ),
      ),
  );
}

function namesOf(node: ts.Node): readonly string[] {
  if (ts.isVariableStatement(node)) {
    return node.declarationList.declarations.map(({ name }) => name.getText());
  }
  return 'name' in node && node.name !== undefined ? [(node.name as ts.Identifier).text] : [];
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
