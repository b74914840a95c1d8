import type { Field } from './fields.ts';
import type { Parts } from './nodes.ts';
import { cut } from './sentinels.ts';
import type { Found } from './sentinels.ts';

/** A value that templates place. */
export type Placed = Field & {
  /** Where it is read from, if it is not one of the values. */
  readonly from?: string;
};

/** Where an expression is. */
export type Scope = {
  readonly fields: readonly Placed[];
  /** What the values are fields of: inside of a range it is not the dot. */
  readonly root: '' | '$';
  /** Defines a part of the file and returns its name. */
  readonly define: (lines: readonly string[]) => string;
};

/** A text of a template. */
export function expressionOf(pipeline: string, isDoubled: boolean): string {
  return `{{ ${pipeline}${isDoubled ? DOUBLED : ''} | quote }}`;
}

/** As synth does where Kubernetes would replace $(NAME) by another variable. */
const DOUBLED = ' | replace "$" "$$"';

/** Whether the switch of a field is on, or its optional value is set. */
export function keptBy(index: number, scope: Scope): string {
  const { path, is } = fieldAt(index, scope);
  if (is === 'switch') return valueAt(index, scope);
  const [name, ...outer] = path.toReversed();
  return `hasKey ${[`${scope.root}.Values`, ...outer.toReversed()].join('.')} "${name}"`;
}

/** The items of a list, or the entries of a map. */
export function listExpression(index: number, scope: Scope): string {
  const variables = fieldAt(index, scope).is === 'map' ? '$key, $value' : '$item';
  return `${variables} := ${valueAt(index, scope)}`;
}

/** Maps as one, without the keys that are set already. Of two with the same key the more specific one wins. */
export function mapExpression(indexes: readonly number[], keys: readonly string[], scope: Scope): string {
  const specific = indexes.toSorted((a, b) => fieldAt(b, scope).path.length - fieldAt(a, scope).path.length);
  const maps = specific.map(index => `${valueAt(index, scope)} | default dict`);
  const merged = maps.length === 1 ? (maps[0] ?? '') : `merge (dict) ${maps.map(grouped).join(' ')}`;
  return keys.length === 0
    ? merged
    : `omit ${grouped(merged)} ${keys.map(key => JSON.stringify(key)).join(' ')}`;
}

/** A text in which values are as they are. */
export function inlineText(text: string, fields: readonly Placed[]): string {
  const scope: Scope = { fields, root: '', define: () => '' };
  return cut(text)
    .map(part => (typeof part === 'string' ? part : `{{ ${pipelineOf(part, scope)} }}`))
    .join('');
}

/** A text with values, or a single one. */
export function textExpression(
  { parts, isNumber }: { readonly parts: Parts; readonly isNumber: boolean },
  scope: Scope,
): string {
  const [only] = parts;
  if (parts.length > 1 || typeof only === 'string' || only === undefined) {
    const format = parts.map(part => (typeof part === 'string' ? part.replaceAll('%', '%%') : '%v')).join('');
    const values = parts
      .filter(part => typeof part !== 'string')
      .map(part => grouped(pipelineOf(part, scope)));
    return `{{ printf ${JSON.stringify(format)} ${values.join(' ')} | quote }}`;
  }
  const isPrinted = isNumber || ('role' in only && (only.role === 'object' || only.role === 'whole'));
  return isPrinted ? `{{ ${pipelineOf(only, scope)} }}` : `{{ ${pipelineOf(only, scope)} | quote }}`;
}

/** An item that is an object, with the defaults of its fields. */
function objectItem(index: number, scope: Scope): string {
  const properties = Object.entries(fieldAt(index, scope).schema.items?.properties ?? {});
  const defaults = properties.filter(([, property]) => property.default !== undefined);
  const pairs = defaults.map(
    ([name, property]) => `${JSON.stringify(name)} ${JSON.stringify(property.default)}`,
  );
  return `merge (dict) $item (dict ${pairs.join(' ')}) | toJson`;
}

function pipelineOf(part: Exclude<Parts[number], string>, scope: Scope): string {
  const { index, role, isDoubled } = 'join' in part ? part.join : part;
  const value = 'join' in part ? `join "," ${valueAt(index, scope)}` : READS[role](index, scope);
  const { from, schema } = fieldAt(index, scope);
  const hasDollars = from === undefined && schema['enum'] === undefined;
  return value + (isDoubled && hasDollars ? DOUBLED : '');
}

function grouped(pipeline: string): string {
  return pipeline.includes(' ') ? `(${pipeline})` : pipeline;
}

const READS: Readonly<Record<Found['role'], (index: number, scope: Scope) => string>> = {
  value: (index, scope) =>
    fieldAt(index, scope).is === 'integer' ? `int ${valueAt(index, scope)}` : valueAt(index, scope),
  whole: (index, scope) => `${valueAt(index, scope)} | toJson`,
  item: () => '$item',
  object: objectItem,
  key: () => '$key',
  entry: () => '$value',
};

function valueAt(index: number, scope: Scope): string {
  const { path, from } = fieldAt(index, scope);
  return scope.root + (from ?? ['.Values', ...path].join('.'));
}

function fieldAt(index: number, { fields }: Scope): Placed {
  const field = fields[index];
  if (!field) throw new Error(`there is no value ${index}`);
  return field;
}
