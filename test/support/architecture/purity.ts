import { posix } from 'node:path';
import ts from 'typescript';
import { importsOf } from './imports.ts';
import type { Import } from './imports.ts';
import { isCompositionRoot, isGenerated } from './places.ts';
import { at, hasModifier } from './source.ts';
import type { Source, Violations } from './source.ts';

const PURE_NAMES = new Set([
  'backend',
  'backoff',
  'conditions',
  'envoy-cluster',
  'envoy-endpoints',
  'objects',
  'plan',
  'status',
  'target',
  'threshold',
  'workload',
]);

const CLOCK = 'the clock: take the time as an argument';
const TIMER = 'a timer: return when to run again, and let the caller wait';
const RANDOMNESS = 'randomness: take the number as an argument';
const PROCESS = 'the environment: take the setting as an argument';
const WORLD = 'the outside world: return what is to be done as data';

/** The globals that a pure file leaves alone, whole or by member, and what it does instead. */
const IMPURE: Readonly<Record<string, string>> = {
  'Date.now': CLOCK,
  'Math.random': RANDOMNESS,
  console: WORLD,
  crypto: RANDOMNESS,
  fetch: WORLD,
  performance: CLOCK,
  process: PROCESS,
  queueMicrotask: TIMER,
  setImmediate: TIMER,
  setInterval: TIMER,
  setTimeout: TIMER,
};

/** Node's modules that only compute, and of node:crypto what does. */
const PURE_MODULES: Readonly<Record<string, readonly string[] | undefined>> = {
  'node:assert': undefined,
  'node:buffer': undefined,
  'node:crypto': ['createHash', 'X509Certificate'],
  'node:path': undefined,
  'node:url': undefined,
  'node:util': undefined,
};

/** Files that are pure by name compute data from data: they do not wait, read a clock, roll dice or touch anything. */
export function purity(sources: readonly Source[]): Violations {
  return sources
    .filter(({ path }) => isPureByName(path))
    .flatMap(source => [
      ...importsOf(source).flatMap(found => impureImport(source, found)),
      ...source.nodes.flatMap(node => waiting(source, node) ?? impureGlobal(source, node) ?? []),
    ]);
}

function isPureByName(path: string): boolean {
  if (path.startsWith('codegen/')) return path !== 'codegen/main.ts';
  if (!path.startsWith('src/') || isGenerated(path) || isCompositionRoot(path)) return false;
  return path.startsWith('src/traffic/') || PURE_NAMES.has(posix.basename(path, '.ts'));
}

function impureImport(source: Source, found: Import): Violations {
  if (!('module' in found) || !found.module.startsWith('node:') || found.isType) return [];
  const allowed = PURE_MODULES[found.module];
  const isPure = Object.hasOwn(PURE_MODULES, found.module);
  if (isPure && (!allowed || found.names.every(name => allowed.includes(name)))) return [];
  const rest = allowed ? ` (but for ${allowed.join(', ')})` : '';
  return [at(source, found.node, `${found.module}${rest} is ${WORLD}${REASON}`)];
}

function waiting(source: Source, node: ts.Node): string | undefined {
  const isAwait = ts.isAwaitExpression(node) || (ts.isForOfStatement(node) && node.awaitModifier);
  const word = isAwait ? 'await' : hasModifier(node, ts.SyntaxKind.AsyncKeyword) ? 'async' : undefined;
  return word && at(source, node, `${word} is waiting: return data, and let the caller act on it${REASON}`);
}

function impureGlobal(source: Source, node: ts.Node): string | undefined {
  const name = isTimeOfDay(node) ? 'new Date()' : globalNameOf(node);
  if (name === undefined) return undefined;
  const reason = name === 'new Date()' ? CLOCK : Object.hasOwn(IMPURE, name) ? IMPURE[name] : undefined;
  return reason && !declares(source, name) ? at(source, node, `${name} is ${reason}${REASON}`) : undefined;
}

const REASON = ' (this file is pure by name)';

/** `new Date()` and `Date()`, but not the date of a given time. */
function isTimeOfDay(node: ts.Node): boolean {
  const isCall = ts.isCallExpression(node) || (ts.isNewExpression(node) && !node.arguments?.length);
  return isCall && ts.isIdentifier(node.expression) && node.expression.text === 'Date';
}

/** `setTimeout` or `Date.now`, also behind globalThis, where a node uses it as a value. */
function globalNameOf(node: ts.Node): string | undefined {
  if (ts.isPropertyAccessExpression(node))
    return `${node.expression.getText()}.${node.name.text}`.replace('globalThis.', '');
  return ts.isIdentifier(node) && isValue(node) ? node.text : undefined;
}

/** Whether an identifier is looked up in its scope, rather than naming a member, a type or something new. */
function isValue(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isShorthandPropertyAssignment(parent)) return true;
  if (ts.isTypeNode(parent) || ts.isQualifiedName(parent)) return false;
  const isName = 'name' in parent && parent.name === node;
  return !isName && !('propertyName' in parent && parent.propertyName === node);
}

/** Whether a file has something of its own by that name, which then is not the global. */
function declares({ nodes }: Source, name: string): boolean {
  return nodes.some(
    node =>
      ts.isIdentifier(node) &&
      node.text === name &&
      (ts.isVariableDeclaration(node.parent) ||
        ts.isParameter(node.parent) ||
        ts.isBindingElement(node.parent) ||
        ts.isFunctionDeclaration(node.parent) ||
        ts.isImportSpecifier(node.parent)) &&
      node.parent.name === node,
  );
}
