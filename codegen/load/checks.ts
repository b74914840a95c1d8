import { defaultFault } from '../defaults.ts';
import type { Kind, ListNode, MapNode, Node, ObjectNode, TextNode, Whole } from '../kind.ts';
import { differsBetweenEngines } from './pattern.ts';
import { below, Refusal } from '../refusal.ts';
import type { Place } from '../refusal.ts';
import { walk } from '../walk.ts';
import type { Located } from '../walk.ts';

/** A fault of a node: where, and why. */
type Fault = { readonly place: Place; readonly why: string };

/** The checks of every node, each under a sentence. */
const NODE_CHECKS: Readonly<Record<string, (node: Node) => readonly Fault[]>> = {
  'every text is bounded': node =>
    node.is === 'text' && isUnbounded(node)
      ? [fault(node, 'needs maxLength (or enum, or format): unbounded texts make CEL rules cost too much')]
      : [],
  'every lower bound is below its upper bound': boundsOutOfOrder,
  'every pattern means the same in RE2 and in JavaScript': node => {
    const pattern = node.is === 'text' || node.is === 'int-or-string' ? node.pattern : undefined;
    const why = pattern === undefined ? undefined : differsBetweenEngines(pattern);
    return why === undefined ? [] : [{ place: below(node.place, 'pattern'), why }];
  },
  'every object has a title, and every title can name a type': node =>
    isNamable(node) ? [] : [fault(node, 'needs a title in CamelCase: it names the TypeScript type')],
  'every field has a name that CEL and JavaScript can read': node =>
    node.is === 'object' ? unreadable(node) : [],
  'a map has rules about its keys, not about its values': node => (node.is === 'map' ? rulesInMap(node) : []),
  'required fields exist': node => (node.is === 'object' ? missingRequired(node) : []),
  'every field has a description': node => (node.is === 'object' ? undescribed(node) : []),
  'a list is unique by something that every item has': node => (node.is === 'list' ? badKeys(node) : []),
  'a default is a value that the field accepts': node => {
    const why = node.default === undefined ? undefined : defaultFault(node, node.default);
    return why === undefined ? [] : [{ place: node.defaultPlace ?? below(node.place, 'default'), why }];
  },
  'a rule has the path of its fault': node => node.rules.flatMap(rule => badRule(node, rule)),
};

/** Refuses the first node of a kind that breaks a check. */
export function checkKind(kind: Kind): void {
  checkNodes(kind.root);
  checkColumns(kind);
}

/** Refuses the first node, of this one and those below, that breaks a check. */
export function checkNodes(root: Node): void {
  for (const { node } of walk(root)) {
    for (const check of Object.values(NODE_CHECKS)) {
      const [first] = check(node);
      if (first) throw new Refusal(first.place, first.why);
    }
  }
}

/** Refuses two different objects with one title: they would be one type. */
export function checkTitles(kinds: readonly Whole[]): void {
  const places = new Map<string, string>();
  for (const { node } of kinds.flatMap((kind): readonly Located[] => walk(kind.root))) {
    if (node.title === undefined) continue;
    const id = `${node.place.file}#${node.place.pointer}`;
    const other = places.get(node.title) ?? id;
    if (other !== id)
      throw new Refusal(below(node.place, 'title'), `"${node.title}" is the title of ${other} too`);
    places.set(node.title, id);
  }
}

/** Refuses two kinds with one plural: they would be one CRD. */
export function checkPlurals(kinds: readonly Kind[]): void {
  for (const [index, { plural, root }] of kinds.entries()) {
    const other = kinds.findIndex(kind => kind.plural === plural);
    const place = below(root.place, 'x-mesh-kind', 'plural');
    if (other !== index) throw new Refusal(place, `"${plural}" is the plural of another kind too`);
  }
}

function boundsOutOfOrder(node: Node): readonly Fault[] {
  const pairs = [
    node.is === 'integer' ? [node.minimum, node.maximum] : [],
    node.is === 'text' ? [node.minLength, node.maxLength] : [],
    node.is === 'list' ? [node.minItems, node.maxItems] : [],
  ];
  const isWrong = pairs.some(([least, most]) => least !== undefined && most !== undefined && least > most);
  return isWrong ? [fault(node, 'has a lower bound above its upper bound: nothing would be right')] : [];
}

function isUnbounded(node: TextNode): boolean {
  return node.maxLength === undefined && node.enum === undefined && node.format === undefined;
}

function fault(node: Node, why: string): Fault {
  return { place: node.place, why };
}

function missingRequired(node: ObjectNode): readonly Fault[] {
  return node.required
    .filter(name => !Object.hasOwn(node.fields, name))
    .map(name => ({
      place: below(node.place, 'required'),
      why: `names "${name}", which is not in properties`,
    }));
}

function isNamable({ is, title }: Node): boolean {
  return title === undefined ? is !== 'object' : /^[A-Z][A-Za-z]+$/.test(title);
}

function unreadable(node: ObjectNode): readonly Fault[] {
  return Object.keys(node.fields)
    .filter(name => !/^[a-z][A-Za-z0-9]*$/.test(name) || name in Object.prototype)
    .map(name => ({
      place: below(node.place, 'properties', name),
      why: 'must be named by a small letter, then letters and digits, and not like a method of every object',
    }));
}

/** A path into a map holds a key, which may be anything; so rules are about the map as a whole. */
function rulesInMap(node: MapNode): readonly Fault[] {
  const hasRules = walk(node.values).some(inner => inner.node.rules.length > 0);
  return hasRules
    ? [fault(node, 'has rules on its values: write them on the map, with self.all(key, ...)')]
    : [];
}

function undescribed(node: ObjectNode): readonly Fault[] {
  return Object.entries(node.fields)
    .filter(([, field]) => field.description === undefined)
    .map(([name]) => ({ place: below(node.place, 'properties', name), why: 'needs a description' }));
}

function badKeys(node: ListNode): readonly Fault[] {
  const { unique, items } = node;
  const place = below(node.place, 'items');
  if (unique.by === 'nothing') return [];
  if (unique.by === 'value') {
    return isScalar(items) ? [] : [{ place, why: 'must be texts, numbers or flags in a list of type set' }];
  }
  if (items.is !== 'object') return [{ place, why: 'must be an object in a list of type map' }];
  return unique.keys
    .filter(key => !isKey(items, key))
    .map(key => ({ place, why: `needs "${key}", a text, number or flag that is required or has a default` }));
}

function isKey(items: ObjectNode, key: string): boolean {
  const field = Object.hasOwn(items.fields, key) ? items.fields[key] : undefined;
  if (!field || !isScalar(field)) return false;
  return items.required.includes(key) || field.default !== undefined;
}

function isScalar(node: Node): boolean {
  return node.is !== 'object' && node.is !== 'map' && node.is !== 'list';
}

const REASONS = ['FieldValueInvalid', 'FieldValueForbidden', 'FieldValueRequired', 'FieldValueDuplicate'];

function badRule(node: Node, rule: Node['rules'][number]): readonly Fault[] {
  const at = (keyword: string, why: string) => [{ place: below(rule.place, keyword), why }];
  if (/\boldSelf\b/.test(rule.rule)) return at('rule', 'may not use oldSelf: a file has no older form');
  if (rule.reason !== undefined && !REASONS.includes(rule.reason)) {
    return at('reason', `must be one of ${REASONS.join(', ')}`);
  }
  if (node.is === 'object' && !rule.fieldPath) {
    return [{ place: rule.place, why: 'needs a fieldPath: the field that the user must change' }];
  }
  if (!rule.fieldPath) return [];
  if (node.is !== 'object') return at('fieldPath', 'is only for rules of an object');
  const isPath = /^(\.[A-Za-z0-9]+)+$/.test(rule.fieldPath);
  return isPath && nodeAt(node, rule.fieldPath) ? [] : at('fieldPath', `${rule.fieldPath} is not a field`);
}

/** The node at a dotted path such as .spec.tailnet, where one is. */
function nodeAt(node: Node, path: string): Node | undefined {
  const steps = path.split('.').slice(1);
  return steps.reduce<Node | undefined>(
    (at, name) => (at?.is === 'object' && Object.hasOwn(at.fields, name) ? at.fields[name] : undefined),
    node,
  );
}

/** Refuses a printer column that would always be empty. */
function checkColumns(kind: Kind): void {
  for (const [index, { jsonPath }] of kind.columns.entries()) {
    const steps = jsonPath.replaceAll(/\[\?\(@\.[A-Za-z]+=="[A-Za-z]+"\)\]|\[\d+\]/g, '.[]');
    const path = steps.slice(1).replaceAll('.[]', '[]');
    if (!walk(kind.root).some(located => located.path === path)) {
      const place = below(kind.root.place, 'x-mesh-kind', 'columns', index, 'jsonPath');
      throw new Refusal(place, `${jsonPath} names no field`);
    }
  }
}
