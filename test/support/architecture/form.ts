import ts from 'typescript';
import { at, hasModifier } from './source.ts';
import type { Source, Violations } from './source.ts';

/** Exports have the same name everywhere. */
export function noDefaultExport(sources: readonly Source[]): Violations {
  return sources.flatMap(source =>
    source.nodes
      .filter(
        node =>
          ts.isExportAssignment(node) ||
          hasModifier(node, ts.SyntaxKind.DefaultKeyword) ||
          (ts.isExportSpecifier(node) && node.name.text === 'default'),
      )
      .map(node => at(source, node, 'is a default export: export it by its name')),
  );
}

/** Types leave no code behind. */
export function noEnumOrNamespace(sources: readonly Source[]): Violations {
  return sources.flatMap(source =>
    source.nodes.flatMap(node => {
      if (ts.isEnumDeclaration(node)) {
        return [at(source, node, `${node.name.text} is an enum: write a union of texts`)];
      }
      const isNamespace =
        ts.isModuleDeclaration(node) && ts.isIdentifier(node.name) && node.name.text !== 'global';
      return isNamespace ? [at(source, node, `${node.name.text} is a namespace: write a file`)] : [];
    }),
  );
}

/** What a file needs stands in its imports by the file that has it. */
export function noBarrel(sources: readonly Source[]): Violations {
  return sources
    .filter(({ path, nodes: [root] }) => path !== 'src/index.ts' && root && isBarrel(root))
    .map(({ path }) => `${path}: only re-exports: delete it, and import from the files themselves`);
}

function isBarrel(root: ts.Node): boolean {
  if (!ts.isSourceFile(root)) return false;
  const statements = root.statements.filter(statement => !ts.isImportDeclaration(statement));
  return statements.length > 0 && statements.every(ts.isExportDeclaration);
}

const VAGUE_NAME = /(?:^|[-._])(manager|helper|util|impl|handler)s?(?:[-._]|$)/i;

/** Folders and files are named by what they hold. */
export function noVagueName(sources: readonly Source[]): Violations {
  return sources.flatMap(({ path }) => {
    const vague = path.split('/').find(name => VAGUE_NAME.test(name));
    return vague === undefined ? [] : [`${path}: "${vague}" is vague: name what it holds or does`];
  });
}
