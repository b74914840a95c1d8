import type { Json } from './json.ts';
import type { Place } from './refusal.ts';

/** A CEL rule of a node, as the API server will evaluate it. */
export type Rule = {
  readonly rule: string;
  readonly message: string;
  readonly fieldPath?: string;
  readonly reason?: string;
  readonly place: Place;
};

type Common = {
  readonly place: Place;
  readonly title?: string;
  readonly description?: string;
  readonly default?: Json;
  /** Where the default is written, if not in the schema of the node itself. */
  readonly defaultPlace?: Place;
  /** A valid value, as a noun: "a port (1 to 65535)". */
  readonly expect?: string;
  /** The value may be a secret and is never shown. */
  readonly sensitive: boolean;
  readonly rules: readonly Rule[];
};

export type TextNode = Common & {
  readonly is: 'text';
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly format?: 'date-time';
};
export type IntegerNode = Common & {
  readonly is: 'integer';
  readonly format: 'int32' | 'int64';
  readonly minimum: number;
  readonly maximum: number;
};
type BooleanNode = Common & { readonly is: 'boolean' };
export type IntOrStringNode = Common & {
  readonly is: 'int-or-string';
  readonly minimum: number;
  readonly pattern: string;
  readonly maxLength: number;
};
export type ListNode = Common & {
  readonly is: 'list';
  readonly items: Node;
  readonly minItems?: number;
  readonly maxItems: number;
  readonly unique: Uniqueness;
};
export type MapNode = Common & {
  readonly is: 'map';
  readonly values: Node;
  readonly maxProperties: number;
};
export type ObjectNode = Common & {
  readonly is: 'object';
  /** Its name in generated code, where a kind narrows what has this title: the title is unique otherwise. */
  readonly definition?: string;
  readonly fields: Readonly<Record<string, Node>>;
  readonly required: readonly string[];
  /** Fields that are dropped without a warning. */
  readonly ignored: readonly string[];
  readonly isAtomic: boolean;
};

/** What makes two items of a list the same: nothing, the whole item, or the values of some keys. */
export type Uniqueness =
  | { readonly by: 'nothing' }
  | { readonly by: 'value' }
  | { readonly by: 'keys'; readonly keys: readonly string[] };

/** One value of a resource: the form between JSON Schema and all outputs. */
export type Node = TextNode | IntegerNode | BooleanNode | IntOrStringNode | ListNode | MapNode | ObjectNode;

/** A column that `kubectl get` prints. */
export type Column = {
  readonly name: string;
  readonly type: string;
  readonly jsonPath: string;
  /** Only with `--output wide`. */
  readonly isWide: boolean;
};

/** A root of what users write: a kind, or the configuration of a command. */
export type Whole = { readonly name: string; readonly root: ObjectNode };

/** One resource kind, read and checked: all that the later phases need. */
export type Kind = {
  readonly name: string;
  /** The name of its files: mesh-endpoints for MeshEndpoints. */
  readonly file: string;
  readonly group: string;
  readonly version: string;
  readonly categories: readonly string[];
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly scope: 'Namespaced' | 'Cluster';
  readonly columns: readonly Column[];
  /** The whole object: apiVersion, kind, metadata, spec, status. */
  readonly root: ObjectNode;
  /** What the kind requires of metadata.name beyond Kubernetes. */
  readonly nameNode?: TextNode;
};
