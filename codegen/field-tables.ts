import type { Kind, Node, ObjectNode } from './kind.ts';
import { walk } from './walk.ts';

/** Where a page has a table: the path of an object, such as `spec.endpoints[]`. */
const TABLE = /^<!-- fields of (\S+) (\S+) -->\n[^]*?^<!-- end of fields -->$/gm;

const BEGIN = '<!-- fields of ';

/** A page with its tables of fields as the schema has them, each between two comments. */
export function withFieldTables(page: string, kinds: readonly Kind[]): string {
  if (page.split(BEGIN).length !== [...page.matchAll(TABLE)].length + 1)
    throw new Error('a table of fields has no end');
  return page.replaceAll(TABLE, (_table, name: string, path: string) => {
    const object = objectAt(kinds, name, path);
    return [
      `<!-- fields of ${name} ${path} -->`,
      '',
      ...table(HEADER, rowsOf(object)),
      '',
      '<!-- end of fields -->',
    ].join('\n');
  });
}

function objectAt(kinds: readonly Kind[], name: string, path: string): ObjectNode {
  const kind = kinds.find(each => each.name === name);
  const found = kind && walk(kind.root).find(each => each.path === path)?.node;
  if (found?.is !== 'object') throw new Error(`a page has a table of ${name} ${path}, which is no object`);
  return found;
}

const HEADER = ['field', 'value', 'default', 'meaning'];

function rowsOf({ fields, required }: ObjectNode): readonly (readonly string[])[] {
  return Object.entries(fields).map(([name, node]) => [
    `\`${name}\`${required.includes(name) ? ' (required)' : ''}`,
    valueOf(node),
    node.default === undefined ? '' : `\`${textOf(node.default)}\``,
    node.description ?? '',
  ]);
}

function valueOf(node: Node): string {
  if (node.expect !== undefined) return node.expect;
  switch (node.is) {
    case 'text':
      return node.enum ? node.enum.map(choice => `\`${choice}\``).join(', ') : textValue(node);
    case 'integer':
      return node.maximum < BEYOND_READING ? `${node.minimum} to ${node.maximum}` : 'a number';
    case 'boolean':
      return '`true` or `false`';
    case 'int-or-string':
      return 'a number or a text';
    case 'list':
      return `at most ${node.maxItems} items`;
    case 'map':
      return `at most ${node.maxProperties} keys with texts`;
    case 'object':
      return 'an object';
  }
}

/** A larger maximum is only that of its type. */
const BEYOND_READING = 2 ** 31 - 1;

function textValue({ format, maxLength }: Extract<Node, { is: 'text' }>): string {
  if (format === 'date-time') return 'a time';
  return maxLength === undefined ? 'a text' : `at most ${maxLength} characters`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The lines of a table in Markdown, with columns of one width. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const cells = [titles, ...rows].map(row => row.map(cell => cell.replaceAll('|', '\\|')));
  const widths = titles.map((_, column) => Math.max(3, ...cells.map(row => (row[column] ?? '').length)));
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const [header = [], ...others] = cells;
  return [line(header), line(widths.map(width => '-'.repeat(width))), ...others.map(line)];
}
