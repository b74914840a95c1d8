import type { Kind, Node, Rule } from '../../../codegen/kind.ts';
import { walk } from '../../../codegen/walk.ts';

/** A constraint of the schema, at one path. */
export type Demand = {
  readonly kind: string;
  readonly path: string;
  readonly node: Node;
} & (
  | { readonly by: 'keyword'; readonly keyword: string }
  | { readonly by: 'required'; readonly field: string }
  | { readonly by: 'rule'; readonly rule: Rule }
);

/** The constraints of a kind's schema on spec, status and the metadata that users write. */
export function demandsOf(kind: Kind): readonly Demand[] {
  return walk(kind.root)
    .filter(({ path }) => isJudged(path))
    .flatMap(({ path, node }) => {
      const at = { kind: kind.name, path, node };
      const required = node.is === 'object' ? node.required : [];
      return [
        ...keywordsOf(node, path).map(keyword => ({ ...at, by: 'keyword', keyword }) as const),
        ...required.map(field => ({ ...at, by: 'required', field }) as const),
        ...node.rules.map(rule => ({ ...at, by: 'rule', rule }) as const),
      ];
    })
    .filter(demand => !isApiServers(demand));
}

/** The name of a constraint in files of the corpus. */
export function nameOf(demand: Demand): string {
  switch (demand.by) {
    case 'keyword':
      return `${demand.path} ${demand.keyword}`;
    case 'required':
      return `${demand.path} required: ${demand.field}`.trim();
    case 'rule':
      return `${demand.path} rule: ${demand.rule.message}`;
  }
}

/** All names in files of the corpus, defaults and pruning included. */
export function ruleNames(kind: Kind): ReadonlySet<string> {
  const nodes = walk(kind.root);
  const defaults = nodes
    .filter(({ node }) => node.default !== undefined)
    .map(({ path }) => `${path} default`);
  const types = nodes.map(({ path }) => `${path} type`);
  const pruned = nodes.filter(({ node }) => node.is === 'object').map(({ path }) => `${path} pruned`.trim());
  return new Set([...demandsOf(kind).map(nameOf), ...defaults, ...types, ...pruned]);
}

/** The API server validates the rest of metadata before any schema. */
function isJudged(path: string): boolean {
  return (
    /^(spec|status)\b/.test(path) || ['', 'metadata', 'metadata.name', 'metadata.labels{}'].includes(path)
  );
}

/** What the API server requires of every object, before and independent of the schema. */
function isApiServers(demand: Demand): boolean {
  if (demand.path === '') return demand.by === 'required' && demand.field !== 'spec';
  return demand.path.startsWith('metadata') && demand.by === 'keyword' && demand.keyword === 'type';
}

/** The keywords that can be deleted one at a time; a type cannot where enum or CEL rules imply it. */
function keywordsOf(node: Node, path: string): readonly string[] {
  const isNeeded = node.rules.length > 0;
  const type = isNeeded || (node.is === 'text' && node.enum) || path === '' ? [] : ['type'];
  switch (node.is) {
    case 'text': {
      const given = ['enum', 'pattern', 'minLength', 'maxLength', 'format'] as const;
      return [...type, ...given.filter(keyword => node[keyword] !== undefined)];
    }
    case 'integer':
      return [...type, 'minimum', 'maximum'];
    case 'boolean':
      return type;
    case 'int-or-string':
      return [...type, 'minimum', 'pattern', 'maxLength'];
    case 'list':
      return [
        ...type,
        ...(node.minItems === undefined ? [] : ['minItems']),
        'maxItems',
        ...(node.unique.by === 'nothing' ? [] : ['unique']),
      ];
    case 'map':
      return [...type, 'maxProperties'];
    case 'object':
      return type;
  }
}
