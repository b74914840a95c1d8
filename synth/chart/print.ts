import { stringify } from 'yaml';
import { expressionOf, keptBy, listExpression, mapExpression, textExpression } from './expressions.ts';
import type { Placed, Scope } from './expressions.ts';
import type { Node } from './nodes.ts';

type Lines = readonly string[];

/** Prints objects as a file of templates, whose name makes those of its parts unique. */
export function printTemplate(name: string, objects: Node, fields: readonly Placed[]): string {
  const parts: string[] = [];
  const define = (lines: Lines) => {
    const part = `mesh-gateway.${name}-${parts.length + 1}`;
    parts.push(`{{- define "${part}" }}`, ...lines, '{{- end }}');
    return part;
  };
  const printed = itemsOf(objects).flatMap(object =>
    guarded(object, { fields, root: '', define }, (node, inner) => ['---', ...fieldLines(node, inner)]),
  );
  return `${[...parts, ...printed].join('\n')}\n`;
}

/** Prints a node, with an `if` or a `range` around it where it has one. */
function guarded(node: Node, scope: Scope, print: (node: Node, scope: Scope) => Lines): Lines {
  switch (node.is) {
    case 'absent':
      return [];
    case 'if': {
      const then = guarded(node.then, scope, print);
      const otherwise = guarded(node.otherwise, scope, print);
      const condition = keptBy(node.index, scope);
      if (then.length === 0) return [`{{- if not (${condition}) }}`, ...otherwise, '{{- end }}'];
      const opening = [`{{- if ${condition} }}`, ...then];
      if (otherwise.length === 0) return [...opening, '{{- end }}'];
      const [next = '', ...others] = otherwise;
      if (node.otherwise.is === 'if') return [...opening, next.replace('{{- if', '{{- else if'), ...others];
      return [...opening, '{{- else }}', ...otherwise, '{{- end }}'];
    }
    case 'range': {
      const inner = { ...scope, root: '$' as const };
      return [
        `{{- range ${listExpression(node.index, scope)} }}`,
        ...guarded(node.item, inner, print),
        '{{- end }}',
      ];
    }
    default:
      return print(node, scope);
  }
}

function itemsOf(node: Node): readonly Node[] {
  if (node.is === 'list') return node.items;
  if (node.is !== 'constant' || !Array.isArray(node.value)) throw new Error(`not a list: ${node.is}`);
  return (node.value as readonly unknown[]).map(value => ({ is: 'constant', value }));
}

/** A map with its fields from the first column. */
function fieldLines(node: Node, scope: Scope): Lines {
  if (node.is === 'constant') return constantLines(node.value);
  if (node.is !== 'map') throw new Error(`not a map: ${node.is}`);
  const fields = Object.entries(node.fields).flatMap(([key, field]) =>
    guarded(field, scope, (inner, at) => fieldLine(key, inner, at)),
  );
  if (node.spreads.length === 0) return fields;
  const entries = mapExpression(node.spreads, Object.keys(node.fields), scope);
  return [
    ...fields,
    `{{- range $key, $value := ${entries} }}`,
    '{{ $key | quote }}: {{ $value | quote }}',
    '{{- end }}',
  ];
}

function fieldLine(key: string, node: Node, scope: Scope): Lines {
  if (node.is === 'constant') return constantLines({ [key]: node.value });
  const [name = ''] = constantLines(key);
  if (node.is === 'map') return [`${name}:`, ...indented(fieldLines(node, scope))];
  if (node.is === 'list')
    return [`${name}:`, ...indented(node.items.flatMap(item => itemLines(item, scope)))];
  return [`${name}: ${scalar(node, scope)}`];
}

function itemLines(item: Node, scope: Scope): Lines {
  return guarded(item, scope, (node, inner) => {
    if (node.is === 'constant') return constantLines([node.value]);
    if (node.is !== 'map') return [`- ${scalar(node, inner)}`];
    const [first, ...others] = fieldLines({ ...node, fields: firstSure(node.fields) }, inner);
    return [`- ${first ?? ''}`, ...indented(others)];
  });
}

/** The line with the dash must be there always. */
function firstSure(fields: Readonly<Record<string, Node>>): Readonly<Record<string, Node>> {
  const isSure = ({ is }: Node) => is !== 'if' && is !== 'absent';
  const entries = Object.entries(fields);
  const sure = entries.filter(([, field]) => isSure(field));
  if (sure.length === 0) throw new Error('an item of a list has no field that is always set');
  return Object.fromEntries([...sure, ...entries.filter(([, field]) => !isSure(field))]);
}

function scalar(node: Node, scope: Scope): string {
  if (node.is === 'text') return textExpression(node, scope);
  if (node.is !== 'json') throw new Error(`not a scalar: ${node.is}`);
  const part = scope.define(fieldLines(node.root, { ...scope, root: '' }));
  return expressionOf(`include "${part}" $ | fromYaml | toJson`, node.isDoubled);
}

function indented(lines: Lines): Lines {
  return lines.map(line => (line === '' ? line : `  ${line}`));
}

/** YAML 1.1, as Helm reads it: in it `on` is no text. */
function constantLines(value: unknown): Lines {
  const text = stringify(value, { version: '1.1', lineWidth: 0 });
  return text.trimEnd().replaceAll('{{', '{{ "{{" }}').split('\n');
}
