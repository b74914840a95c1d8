import { stringify } from 'yaml';
import { fieldsOf, isGroup } from './fields.ts';
import type { Schema } from './fields.ts';

/** The text of values.yaml: all values with their defaults; those without one are comments. */
export function valuesFile(schema: Schema): string {
  return linesOf(schema).join('\n') + '\n';
}

function linesOf({ properties = {} }: Schema): readonly string[] {
  return Object.entries(properties).flatMap(([name, field]) => {
    const comment = wrapped(field.description ?? '').map(line => `# ${line}`);
    if (isGroup(field)) {
      const inner = linesOf(field);
      const isEmpty = inner.every(line => line.startsWith('#'));
      return [...comment, isEmpty ? `${name}: {}` : `${name}:`, ...inner.map(line => `  ${line}`)];
    }
    if (field.default === undefined) return [...comment, `# ${name}:`];
    return [...comment, stringify({ [name]: field.default }, { version: '1.1' }).trimEnd()];
  });
}

const WIDTH = 110;

function wrapped(text: string): readonly string[] {
  return text.split(' ').reduce<readonly string[]>((lines, word) => {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length + 1 > WIDTH) return [...lines, word];
    return [...lines.slice(0, -1), `${last} ${word}`];
  }, []);
}

/** The text of values.schema.json, which refuses unknown values, and `null` for those that have a default. */
export function valuesSchema(schema: Schema): string {
  const { properties, ...closed } = strict(schema);
  // Helm adds it to the values of every chart.
  const global = { type: 'object', description: 'Values that charts share.' };
  const root = { $schema: 'http://json-schema.org/draft-07/schema#', ...closed };
  return `${JSON.stringify({ ...root, properties: { ...properties, global } }, undefined, 2)}\n`;
}

/** Only what values.yaml sets can be required: Helm fills in no defaults in items. */
function strict(schema: Schema): Schema {
  const { items, properties } = schema;
  if (items?.properties) return { ...schema, items: { ...strict(items), required: items['required'] ?? [] } };
  if (!properties) return schema;
  const entries = Object.entries(properties);
  const required = entries.filter(([, field]) => field.default !== undefined).map(([name]) => name);
  return {
    ...schema,
    additionalProperties: false,
    required: schema['required'] ?? required,
    properties: Object.fromEntries(entries.map(([name, field]) => [name, strict(field)])),
  };
}

/** A table of all values, in Markdown. */
export function valuesTable(schema: Schema): string {
  const rows = fieldsOf(schema).map(({ path, schema: { default: usual, description = '' } }) => [
    `\`${path.join('.')}\``,
    usual === undefined ? '' : `\`${JSON.stringify(usual).replaceAll('"', '')}\``,
    description.replaceAll('|', '\\|'),
  ]);
  return [['value', 'default', 'meaning'], ['---', '---', '---'], ...rows]
    .map(row => `| ${row.join(' | ')} |`)
    .join('\n');
}
