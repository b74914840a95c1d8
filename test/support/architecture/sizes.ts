import ts from 'typescript';
import { isGenerated, isTest } from './places.ts';
import { at, linesOf } from './source.ts';
import type { Source, Violations } from './source.ts';
import { isArgumentOfTests } from './test-calls.ts';

const MAX_LINES_OF_A_FILE = 500;
const MAX_LINES_OF_A_TEST_FILE = 500;
const MAX_LINES_OF_A_FUNCTION = 80;

/** A file (`src/a.ts`) or a function (`src/a.ts#name`) that may be too long, and why it is better so. */
type SizeException = { readonly of: string; readonly because: string };

const EXCEPTIONS: readonly SizeException[] = [];

/** Something longer than it may be. */
type Excess = { readonly of: string; readonly message: string };

/** Files and functions written by hand stay short enough to be read at once, but for the named exceptions. */
export function sizes(
  sources: readonly Source[],
  exceptions: readonly SizeException[] = EXCEPTIONS,
): Violations {
  const excesses = sources
    .filter(({ path }) => !isGenerated(path))
    .flatMap(source => [...longFile(source), ...longFunctions(source)]);
  const isExcused = ({ of }: Excess) => exceptions.some(exception => exception.of === of);
  const needless = exceptions.filter(({ of }) => !excesses.some(excess => excess.of === of));
  return [
    ...excesses.filter(excess => !isExcused(excess)).map(({ message }) => message),
    ...needless.map(({ of }) => `${of}: is not too long (any more): remove its exception`),
  ];
}

function longFile({ path, text }: Source): readonly Excess[] {
  const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
  const most = isTest(path) ? MAX_LINES_OF_A_TEST_FILE : MAX_LINES_OF_A_FILE;
  if (lines <= most) return [];
  const message = `${path}: has ${lines} lines, and at most ${most} are allowed: split it by idea`;
  return [{ of: path, message }];
}

function longFunctions(source: Source): readonly Excess[] {
  return source.nodes.flatMap(node => {
    if (!isFunctionWithBlock(node) || isArgumentOfTests(source.path, node)) return [];
    const lines = linesOf(node);
    if (lines <= MAX_LINES_OF_A_FUNCTION) return [];
    const name = nameOf(node);
    const message = `${name} has ${lines} lines, and at most ${MAX_LINES_OF_A_FUNCTION} are allowed: name its parts`;
    return [{ of: `${source.path}#${name}`, message: at(source, node, message) }];
  });
}

function isFunctionWithBlock(node: ts.Node): node is ts.FunctionLikeDeclaration {
  return ts.isFunctionLike(node) && 'body' in node && node.body !== undefined && ts.isBlock(node.body);
}

/** Its own name, or that of what it is assigned to. */
function nameOf(node: ts.FunctionLikeDeclaration): string {
  if (ts.isConstructorDeclaration(node)) return 'constructor';
  const { parent } = node;
  const name =
    node.name ??
    (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent) ? parent.name : undefined);
  return name?.getText() ?? 'a function without a name';
}
