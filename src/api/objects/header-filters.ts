import { isRecord } from '../json.ts';
import { field, items } from './place.ts';
import type { FieldValue } from './place.ts';

/** A header with its value. */
type NamedHeader = { readonly name: string; readonly value: string };

/** Which headers a filter changes, in this order. */
export type HeaderChanges = {
  readonly add: readonly NamedHeader[];
  readonly set: readonly NamedHeader[];
  readonly remove: readonly string[];
};

/** The filters of a backendRef. */
export type BackendFilters = {
  readonly request?: HeaderChanges;
  readonly response?: HeaderChanges;
  /** The types of all others, and of those with headers that cannot be changed. */
  readonly others: readonly string[];
};

/** The filters of a backendRef; undefined if it has none. */
export function backendFiltersIn(backend: FieldValue): BackendFilters | undefined {
  const filters = items(field(backend, 'filters')).map(({ value }) => (isRecord(value) ? value : {}));
  if (filters.length === 0) return undefined;
  // Each type occurs once at most.
  const changes = (type: string, name: string) =>
    changesIn(filters.find(each => each['type'] === type)?.[name]);
  const request = changes('RequestHeaderModifier', 'requestHeaderModifier');
  const response = changes('ResponseHeaderModifier', 'responseHeaderModifier');
  const read = [
    ...(request ? ['RequestHeaderModifier'] : []),
    ...(response ? ['ResponseHeaderModifier'] : []),
  ];
  const types = filters.map(({ type }) => String(type));
  return {
    ...(request && { request }),
    ...(response && { response }),
    others: types.filter(type => !read.includes(type)),
  };
}

/** Undefined if it is none, or has a header that cannot be changed or a value that none can have: Envoy would refuse all routes. */
function changesIn(filter: unknown): HeaderChanges | undefined {
  if (!isRecord(filter)) return undefined;
  const { add = [], set = [], remove = [] } = filter;
  if (!isListOf(add, isHeader) || !isListOf(set, isHeader) || !isListOf(remove, isName)) return undefined;
  return { add: add.map(copied), set: set.map(copied), remove };
}

function isListOf<T>(value: unknown, is: (item: unknown) => item is T): value is readonly T[] {
  return Array.isArray(value) && value.every(is);
}

function isHeader(value: unknown): value is NamedHeader {
  return isRecord(value) && isName(value['name']) && isValue(value['value']);
}

const copied = ({ name, value }: NamedHeader): NamedHeader => ({ name, value });

const NAME = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,256}$/;

/** Envoy does not change `Host`. */
function isName(value: unknown): value is string {
  return typeof value === 'string' && NAME.test(value) && value.toLowerCase() !== 'host';
}

const MAX_VALUE = 4096;
const VALUE = /^[!-~]+(?:[\t ][!-~]+)*$/;

function isValue(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_VALUE && VALUE.test(value);
}
