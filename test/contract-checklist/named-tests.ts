import { existsSync, readFileSync } from 'node:fs';
import ts from 'typescript';
import { parseSource } from '../support/architecture/source.ts';
import { isTestCall } from '../support/architecture/test-calls.ts';
import type { NamedTest } from './row.ts';

/** What is wrong with the name of a test; undefined where the test exists and runs. */
export function faultOf([file, title]: NamedTest): string | undefined {
  const titles = titlesOf(file);
  if (!titles) return `${file} does not exist`;
  const isSkipped = titles.get(title);
  if (isSkipped === undefined) return `${file} has no test with the title: ${title}`;
  return isSkipped ? `${file} skips the test: ${title}` : undefined;
}

/** The titles of the tests of a file and the texts of their cases, each with whether it is skipped. */
function titlesOf(file: string): ReadonlyMap<string, boolean> | undefined {
  if (!existsSync(file)) return undefined;
  return titlesIn(readFileSync(file, 'utf8'), file);
}

/** As `titlesOf`, of the text of a file. */
export function titlesIn(text: string, file = 'test/example.test.ts'): ReadonlyMap<string, boolean> {
  const titles = new Map<string, boolean>();
  for (const node of parseSource(file, text).nodes) {
    if (isTestCall(node)) {
      const [title] = node.arguments;
      if (title && ts.isStringLiteralLike(title)) titles.set(title.text, isSkipped(node));
    } else if (isCase(node)) {
      titles.set(node.text, titles.get(node.text) ?? false);
    }
  }
  return titles;
}

/** A text in a table of cases: the first of a tuple, or a property of an object. */
function isCase(node: ts.Node): node is ts.StringLiteral {
  if (!ts.isStringLiteral(node)) return false;
  return ts.isArrayLiteralExpression(node.parent) || ts.isPropertyAssignment(node.parent);
}

/** Whether a test or a group around it is skipped, or still to be written. */
function isSkipped(node: ts.Node): boolean {
  for (let at: ts.Node = node; !ts.isSourceFile(at); at = at.parent) {
    if (ts.isCallExpression(at) && /\.(skip|todo)\b/.test(at.expression.getText())) return true;
  }
  return false;
}
