import { isBuiltin } from 'node:module';
import { posix } from 'node:path';
import ts from 'typescript';
import type { Source } from './source.ts';

/** One file or package that a file names, in whatever form. */
export type Import = {
  readonly node: ts.Node;
  /** Gone at run time. `import { type A }` is not: the compiler keeps `import {}`. */
  readonly isType: boolean;
  /** The names taken from it, or * where it is taken whole. */
  readonly names: readonly string[];
} & ({ readonly file: string } | { readonly package: string; readonly module: string });

/** What files import, which several rules ask. */
const known = new WeakMap<Source, readonly Import[]>();

/** All that a file imports and re-exports, types and `import()` included. */
export function importsOf(source: Source): readonly Import[] {
  const imports = known.get(source) ?? findImports(source);
  known.set(source, imports);
  return imports;
}

function findImports({ path, nodes }: Source): readonly Import[] {
  return nodes.flatMap((node): readonly Import[] => {
    const found = clauseOf(node);
    if (!found) return [];
    const { specifier, ...clause } = found;
    if (specifier.startsWith('.')) {
      return [{ node, ...clause, file: posix.join(posix.dirname(path), specifier) }];
    }
    const module = isBuiltin(specifier) ? `node:${specifier.replace('node:', '')}` : specifier;
    return [{ node, ...clause, package: packageOf(module), module }];
  });
}

type Clause = { readonly specifier: string; readonly isType: boolean; readonly names: readonly string[] };

function clauseOf(node: ts.Node): Clause | undefined {
  if (ts.isImportDeclaration(node)) {
    const isType = node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword;
    return { specifier: textOf(node.moduleSpecifier), isType, names: importedNames(node.importClause) };
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier) {
    return { specifier: textOf(node.moduleSpecifier), isType: node.isTypeOnly, names: ['*'] };
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return { specifier: textOf(node.argument.literal), isType: true, names: ['*'] };
  }
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    return { specifier: textOf(node.arguments[0]), isType: false, names: ['*'] };
  }
  return undefined;
}

function importedNames(clause: ts.ImportClause | undefined): readonly string[] {
  const bindings = clause?.namedBindings;
  if (!bindings || clause.name || ts.isNamespaceImport(bindings)) return ['*'];
  return bindings.elements.map(element => (element.propertyName ?? element.name).text);
}

function textOf(node: ts.Node | undefined): string {
  return node && ts.isStringLiteralLike(node) ? node.text : 'a computed name';
}

/** node:fs of node:fs/promises, @scope/name of @scope/name/part. */
function packageOf(module: string): string {
  const [first = '', second = ''] = module.split('/');
  return first.startsWith('@') ? `${first}/${second}` : first;
}
