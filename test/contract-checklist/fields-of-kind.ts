import type { Kind, Node, ObjectNode } from '../../codegen/kind.ts';
import { walk } from '../../codegen/walk.ts';
import type { Row, Table } from './row.ts';

/** A field of a kind as a row of the contract has it. */
export type FieldRow = {
  readonly kind: string;
  readonly path: string;
  readonly type: string;
  /** Undefined in tables without this column. */
  readonly isRequired: boolean | undefined;
  /** Undefined in tables without this column, and where there is no default. */
  readonly default: string | undefined;
};

/** The field of a row of a table of fields. */
export function fieldOf({ fieldsOf, columns }: Table, { cells }: Row): FieldRow | undefined {
  if (!fieldsOf) return undefined;
  const cell = (column: string) => cells[columns.indexOf(column)];
  const required = cell('Required');
  const default_ = cell('Default');
  return {
    kind: fieldsOf.kind,
    path: `${fieldsOf.path}.${cells[0]}`,
    type: cell('Type') ?? '',
    isRequired: required === undefined ? undefined : required === 'yes',
    default: default_ === 'none' ? undefined : default_,
  };
}

/** May be left out where endpoints are discovered, which the contract shows as the dynamic form. */
const REQUIRED_BY_A_RULE = ['spec.endpoints'];

/** Where the protocol decides it: `healthCheckOf` has the default of the contract for all protocols that can carry it. */
const DEFAULT_BY_PROTOCOL = ['spec.endpoints[].healthCheck.type'];

/** How a field of the schema differs from its row of the contract. */
export function differencesOf(kinds: readonly Kind[], row: FieldRow): readonly string[] {
  const root = kinds.find(({ name }) => name === row.kind)?.root;
  const nodes = new Map(root ? walk(root).map(({ path, node }) => [path, node]) : []);
  const node = nodes.get(row.path);
  if (!node) return [`${row.path} does not exist`];
  const [, parentPath = '', name = ''] = /^(.*)\.(\w+)$/.exec(row.path) ?? [];
  const parent = nodes.get(parentPath) as ObjectNode;
  const given = typeof node.default === 'string' ? node.default : JSON.stringify(node.default);
  const isRequired = parent.required.includes(name) || REQUIRED_BY_A_RULE.includes(row.path);
  return [
    ...(isOfType(node, row.type) ? [] : [`${row.path} is not of the type ${row.type}`]),
    ...(row.isRequired === undefined || row.isRequired === isRequired
      ? []
      : [`${row.path} is ${isRequired ? '' : 'not '}required`]),
    ...(row.default === undefined || row.default === given || DEFAULT_BY_PROTOCOL.includes(row.path)
      ? []
      : [`${row.path} has the default ${given} instead of ${row.default}`]),
  ];
}

/** Whether a node is of a type in the notation of Go. */
function isOfType(node: Node, type: string): boolean {
  if (type.startsWith('[]')) return node.is === 'list' && isOfType(node.items, type.slice(2));
  switch (type) {
    case 'string':
      return node.is === 'text';
    case 'int32':
      return node.is === 'integer' && node.format === 'int32';
    case 'bool':
      return node.is === 'boolean';
    case 'map[string]string':
      return node.is === 'map' && node.values.is === 'text';
    default:
      return node.is === 'object';
  }
}

/** A kind without one of its fields. */
export function withoutField(kind: Kind, path: string): Kind {
  return { ...kind, root: without(kind.root, path.split(/\.|(?=\[\])/)) as ObjectNode };
}

function without(node: Node, [step = '', ...rest]: readonly string[]): Node {
  if (node.is === 'list') return { ...node, items: without(node.items, rest) };
  if (node.is !== 'object') throw new Error(`${node.is} has no field ${step}`);
  const { [step]: field, ...others } = node.fields;
  if (!field) throw new Error(`there is no field ${step}`);
  if (rest.length > 0) return { ...node, fields: { ...others, [step]: without(field, rest) } };
  return { ...node, fields: others, required: node.required.filter(name => name !== step) };
}
