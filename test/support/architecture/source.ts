import ts from 'typescript';

/** A text file of the project; its path starts at the project's root. */
export type TextFile = { readonly path: string; readonly text: string };

/** A TypeScript file, parsed once: all its nodes, parents before children. */
export type Source = TextFile & { readonly nodes: readonly ts.Node[] };

/** What is wrong, each with its place and with what to do instead; nothing where a rule holds. */
export type Violations = readonly string[];

/** Parses a TypeScript file, without its types. */
export function parseSource(path: string, text: string): Source {
  const nodes: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    nodes.push(node);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true));
  return { path, text, nodes };
}

/** A message about a node, behind its file and line. */
export function at({ path }: Source, node: ts.Node, message: string): string {
  return `${path}:${lineOf(node, node.getStart())}: ${message}`;
}

/** The lines from the first to the last character of a node. */
export function linesOf(node: ts.Node): number {
  return lineOf(node, node.getEnd()) - lineOf(node, node.getStart()) + 1;
}

function lineOf(node: ts.Node, position: number): number {
  return node.getSourceFile().getLineAndCharacterOfPosition(position).line + 1;
}

/** Whether a declaration carries a modifier, such as export, default or async. */
export function hasModifier(node: ts.Node, kind: ts.SyntaxKind): boolean {
  return ts.canHaveModifiers(node) && (ts.getModifiers(node) ?? []).some(modifier => modifier.kind === kind);
}
