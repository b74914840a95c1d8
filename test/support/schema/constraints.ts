import type { Kind, Node, Rule } from '../../../codegen/kind.ts';
import { walk } from '../../../codegen/walk.ts';

/** A constraint of the schema, at one path. */
export type Constraint = {
  readonly kind: string;
  readonly path: string;
  readonly node: Node;
} & (
  | { readonly by: 'keyword'; readonly keyword: string }
  | { readonly by: 'required'; readonly field: string }
  | { readonly by: 'rule'; readonly rule: Rule }
);

/** The constraints of a kind's schema on spec, status and the metadata that users write. */
export function constraintsOf(kind: Kind): readonly Constraint[] {
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
    .filter(constraint => !isApiServers(constraint));
}

/** The name of a constraint in files of the corpus. */
export function nameOf(constraint: Constraint): string {
  switch (constraint.by) {
    case 'keyword':
      return `${constraint.path} ${constraint.keyword}`;
    case 'required':
      return `${constraint.path} required: ${constraint.field}`.trim();
    case 'rule':
      return `${constraint.path} rule: ${constraint.rule.message}`;
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
  return new Set([...constraintsOf(kind).map(nameOf), ...defaults, ...types, ...pruned]);
}

/** The API server validates the rest of metadata before any schema. */
function isJudged(path: string): boolean {
  return (
    /^(spec|status)\b/.test(path) || ['', 'metadata', 'metadata.name', 'metadata.labels{}'].includes(path)
  );
}

/** What the API server requires of every object, before and independent of the schema. */
function isApiServers(constraint: Constraint): boolean {
  if (constraint.path === '') return constraint.by === 'required' && constraint.field !== 'spec';
  return (
    constraint.path.startsWith('metadata') && constraint.by === 'keyword' && constraint.keyword === 'type'
  );
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
