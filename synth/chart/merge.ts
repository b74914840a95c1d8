import { isRecord } from '../../src/api/json.ts';
import type { Node, NodeFields } from './nodes.ts';

/** What one run of synth wrote, with the indexes of the switches that were on and of the optional values that were set. */
export type Run = { readonly on: ReadonlySet<number>; readonly node: Node };

const ABSENT: Node = { is: 'absent' };

/**
 * One node for all runs: equal parts as they are, and an `if` where they differ. A part may depend on up to three switches
 * if the runs are those with none, with each alone, with all, and with all but each.
 */
export function merge(runs: readonly Run[]): Node {
  const [first] = runs;
  if (!first) return ABSENT;
  if (count(runs, JSON.stringify) === 1) return first.node;
  const opened = runs.map(({ on, node }) => ({ on, node: open(node) }));
  if (forms(opened) > 1) return split(runs);
  const node = open(first.node);
  switch (node.is) {
    case 'map':
      return { ...node, fields: mergeFields(opened, fieldsIn), spreads: spreadsOf(opened) };
    case 'list':
      return { ...node, items: Object.values(mergeFields(opened, itemsIn)) };
    case 'json':
      return { ...node, root: mergeInner(opened) };
    case 'range':
      return { ...node, item: mergeInner(opened) };
    case 'absent':
    case 'constant':
    case 'text':
    case 'if':
      throw new Error(`these differ although they are of one form: ${JSON.stringify(node)}`);
  }
}

function count(runs: readonly Run[], textOf: (node: Node) => string): number {
  return new Set(runs.map(({ node }) => textOf(node))).size;
}

/** A constant map or list as one whose parts can differ. */
function open(node: Node): Node {
  if (node.is !== 'constant') return node;
  const constant = (value: unknown): Node => ({ is: 'constant', value });
  if (Array.isArray(node.value)) return { is: 'list', items: node.value.map(constant) };
  if (!isRecord(node.value)) return node;
  const fields = Object.entries(node.value).map(([key, value]) => [key, constant(value)] as const);
  return { is: 'map', fields: Object.fromEntries(fields), spreads: [] };
}

/** How many forms the nodes have; those of one form are merged part by part. */
function forms(runs: readonly Run[]): number {
  const opened = runs.map(({ on, node }) => ({ on, node: open(node) }));
  // Entries of a spread must not repeat fields, so it has to be known which fields there are.
  const areSpread = spreadsOf(opened).length > 0;
  return count(opened, node =>
    areSpread && node.is === 'map' ? `map ${Object.keys(node.fields).sort().join()}` : formOf(node),
  );
}

function formOf(node: Node): string {
  switch (node.is) {
    case 'map':
      return 'map';
    case 'list':
      return node.items.every(item => nameOf(item) !== undefined) ? 'list' : `list ${node.items.length}`;
    case 'json':
      return `json ${node.isDoubled}`;
    case 'range':
      return `range ${node.index}`;
    case 'absent':
    case 'constant':
    case 'text':
    case 'if':
      return JSON.stringify(node);
  }
}

/** An `if` for the switch that leaves the fewest forms on both sides. */
function split(runs: readonly Run[]): Node {
  const [best] = [...new Set(runs.flatMap(({ on }) => [...on]))]
    .map(index => ({
      index,
      then: runs.filter(({ on }) => on.has(index)),
      otherwise: runs.filter(({ on }) => !on.has(index)),
    }))
    .filter(({ otherwise }) => otherwise.length > 0)
    .toSorted((one, other) => formsAfter(one) - formsAfter(other));
  if (!best) throw new Error('runs with the same switches differ');
  return { is: 'if', index: best.index, then: merge(best.then), otherwise: merge(best.otherwise) };
}

function formsAfter({ then, otherwise }: Record<'then' | 'otherwise', readonly Run[]>): number {
  return forms(then) + forms(otherwise);
}

function mergeInner(runs: readonly Run[]): Node {
  const innerOf = (node: Node) => (node.is === 'json' ? node.root : node.is === 'range' ? node.item : ABSENT);
  return merge(runs.map(({ on, node }) => ({ on, node: innerOf(node) })));
}

function mergeFields(runs: readonly Run[], fieldsOf: (node: Node) => NodeFields): NodeFields {
  const all = runs.map(({ on, node }) => ({ on, fields: fieldsOf(node) }));
  const names = [...new Set(all.flatMap(({ fields }) => Object.keys(fields)))];
  const merged = names.map(
    name => [name, merge(all.map(({ on, fields }) => ({ on, node: fields[name] ?? ABSENT })))] as const,
  );
  return Object.fromEntries(merged);
}

function fieldsIn(node: Node): NodeFields {
  return node.is === 'map' ? node.fields : {};
}

function spreadsOf(runs: readonly Run[]): readonly number[] {
  return [...new Set(runs.flatMap(({ node }) => (node.is === 'map' ? node.spreads : [])))];
}

/** Items by their names, or by their positions. */
function itemsIn(node: Node): NodeFields {
  const items = node.is === 'list' ? node.items : [];
  return Object.fromEntries(items.map((item, index) => [nameOf(item) ?? `item ${index}`, item]));
}

/** What names an object, or an item of a list such as a variable; undefined if nothing does. */
function nameOf(node: Node): string | undefined {
  if (node.is === 'range') return nameOf(node.item);
  const { kind, name, metadata } = fieldsIn(open(node));
  if (name) return JSON.stringify(name);
  if (!kind || !metadata) return undefined;
  const { name: own, namespace } = fieldsIn(open(metadata));
  return JSON.stringify([kind, own, namespace]);
}
