import {
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  stringify,
} from 'yaml';
import type { Document, ScalarTag, Tags, YAMLMap } from 'yaml';
import { isRecord } from './json.ts';
import type { Steps } from './problem.ts';

/** A line and a column of a file, from 1. */
export type Position = { readonly line: number; readonly column: number };

/** A document of a YAML file, with a function that finds where a path is. */
type SourceDocument = {
  readonly value: unknown;
  readonly positionOf: (steps: Steps) => Position;
};

/** A syntax error and where it is. */
type SyntaxFault = Position & { readonly message: string };

/** The documents of a text. */
export type Documents = {
  readonly documents: readonly SourceDocument[];
  readonly faults: readonly SyntaxFault[];
};

/** A value as YAML, to paste into a file. */
export function yamlOf(value: unknown): string {
  return stringify(value);
}

/** Parses YAML (and so JSON) as kubectl does: by YAML 1.1, where yes is true. */
export function readDocuments(text: string): Documents {
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text.replaceAll(BYTE_ORDER_MARK, ''), {
    lineCounter: lines,
    prettyErrors: false,
    version: '1.1',
    // The library compares each key with each other; refusalOf does it in one pass.
    uniqueKeys: false,
    logLevel: 'error',
    customTags: tags => [OCTAL, ...tags.filter(isInKubernetes).map(withRealNumbers)],
  });
  const list: readonly Document[] = Array.isArray(parsed) ? parsed : [];
  const read = list.map(document => readDocument(document, lines));
  return {
    documents: read.flatMap(one => ('document' in one ? [one.document] : [])),
    faults: read.flatMap(one => ('fault' in one ? [hinted(one.fault, text)] : [])),
  };
}

/** Each joined file may begin with one; the library takes all but the first for a part of the next key. */
const BYTE_ORDER_MARK = /^\uFEFF/gm;

/** Templates are what is given most often where YAML is expected. */
function hinted(fault: SyntaxFault, text: string): SyntaxFault {
  const line = text.split('\n', fault.line).at(-1) ?? '';
  return line.includes('{{') ? { ...fault, message: TEMPLATE } : fault;
}

const TEMPLATE =
  'this looks like a template, such as those of Helm: render it first, as in helm template FOLDER | mesh-gateway check -';

type Read = { readonly document: SourceDocument } | { readonly fault: SyntaxFault };

/** Messages never quote the file, as the library's do: it may hold secrets. */
function readDocument(document: Document, lines: LineCounter): Read {
  const faultAt = (offset: number, message: string): Read => ({
    fault: { ...positionAt(offset, lines), message },
  });
  const [first] = document.errors;
  if (first) return faultAt(first.pos[0], SYNTAX[first.code] ?? 'this is not YAML');
  const refusal = refusalOf(document, lines);
  if (refusal) return faultAt(refusal.offset, refusal.message);
  try {
    const value: unknown = document.toJS({ maxAliasCount: -1 });
    return { document: { value, positionOf: steps => positionOf(document, steps, lines) } };
  } catch {
    return faultAt(document.range?.[0] ?? 0, 'what is merged by << must be maps');
  }
}

/** Messages for common syntax errors. */
const SYNTAX: Readonly<Partial<Record<string, string>>> = {
  BAD_INDENT: 'the indentation does not fit what is around it, or a bracket is not closed',
  BAD_SCALAR_START: 'a text that begins with @ or ` needs quotes',
  BAD_DQ_ESCAPE: 'a text in double quotes has an escape that YAML does not know',
  MISSING_CHAR: 'a quote, bracket or comma is missing, or the indentation does not fit what is around it',
  MULTILINE_IMPLICIT_KEY: 'a key must be on one line; is a quote or a colon missing?',
  TAB_AS_INDENT: 'tabs must not indent: use spaces',
  UNEXPECTED_TOKEN: 'this does not belong here; is a bracket, a quote or a colon wrong?',
};

/** YAML 1.1 has types for times, dates and bytes, which the API server reads as texts. */
function isInKubernetes(tag: Tags[number]): boolean {
  if (typeof tag !== 'object') return true;
  return !/:(timestamp|binary)$/.test(tag.tag) && !('format' in tag && tag.format === 'TIME');
}

/** Octal numbers of YAML 1.2, which kubectl reads beside those of YAML 1.1. */
const OCTAL: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  test: /^[-+]?0o[0-7]+$/,
  resolve: text => Number.parseInt(text.replace('0o', ''), 8),
};

/** The library reads e-1 and a single dot as numbers, with the value NaN; kubectl reads them as texts. */
function withRealNumbers(tag: Tags[number]): Tags[number] {
  if (typeof tag !== 'object' || !/:(int|float)$/.test(tag.tag) || tag.collection !== undefined) return tag;
  const resolve: ScalarTag['resolve'] = (text, ...rest) => {
    const resolved = tag.resolve(text, ...rest);
    const value = isScalar(resolved) ? resolved.value : resolved;
    return typeof value !== 'number' || Number.isFinite(value) || /^[-+]?\.(inf|nan)$/i.test(text)
      ? resolved
      : text;
  };
  return { ...tag, resolve };
}

/** Max aliases of a document, and max values and keys that its aliases expand to. */
const [MAX_ALIASES, MAX_NAMED] = [10_000, 1_000_000];

type Refusal = { readonly offset: number; readonly message: string };

/** The first error that the library accepts: a key that is repeated or not a text, or an invalid alias. */
function refusalOf(document: Document, lines: LineCounter): Refusal | undefined {
  const sizes = new Map<string, number | 'open'>();
  let found: Refusal | undefined;
  let [written, aliases] = [0, 0];
  const refuse = (node: unknown, message: string) =>
    void (found ??= { offset: (isNode(node) ? node.range?.[0] : undefined) ?? 0, message });
  const sizeOf = (node: unknown): number => {
    if (isPair(node)) return sizeOf(node.key) + sizeOf(node.value);
    if (isAlias(node)) {
      const size = sizes.get(node.source);
      if (++aliases > MAX_ALIASES) refuse(node, 'there are too many aliases');
      if (size === undefined) refuse(node, 'this names no anchor; put a text that begins with * into quotes');
      if (size === 'open') refuse(node, 'an anchor must not contain itself');
      return typeof size === 'number' ? size : 0;
    }
    if (!isNode(node)) return 0;
    written++;
    if (node.anchor !== undefined) sizes.set(node.anchor, 'open');
    if (isMap(node)) refuseKeys(node, lines, refuse);
    let size = 1;
    if (isMap(node) || isSeq(node)) for (const item of node.items) size += sizeOf(item);
    if (node.anchor !== undefined) sizes.set(node.anchor, size);
    return size;
  };
  if (sizeOf(document.contents) - written > MAX_NAMED)
    refuse(document.contents, 'the aliases of this document stand for too much');
  return found;
}

/** The merge key << may be repeated. */
function refuseKeys(
  { items }: YAMLMap,
  lines: LineCounter,
  refuse: (node: unknown, message: string) => void,
): void {
  const seen = new Map<string, unknown>();
  for (const { key } of items) {
    const text = isScalar(key) ? String(key.value) : undefined;
    if (text === undefined) refuse(key, 'a key must be a text');
    else if (seen.has(text) && text !== '<<') {
      const fix = text === 'apiVersion' ? 'put --- before the next object' : 'remove one of them';
      refuse(key, `this key is in line ${lineOf(seen.get(text), lines)} already: ${fix}`);
    } else seen.set(text, key);
  }
}

function lineOf(node: unknown, lines: LineCounter): number {
  return lines.linePos((isNode(node) ? node.range?.[0] : undefined) ?? 0).line;
}

/** Where the value at a path is, or the innermost value that contains it. */
function positionOf(document: Document, steps: Steps, lines: LineCounter): Position {
  const around = [document.contents as unknown];
  for (const step of steps) around.unshift(childOf(around[0], step));
  const found = around.find(node => isNode(node) && node.range);
  return isNode(found) && found.range ? positionAt(found.range[0], lines) : { line: 1, column: 1 };
}

function positionAt(offset: number, lines: LineCounter): Position {
  const { line, col } = lines.linePos(offset);
  return { line, column: col };
}

/** A key that is written as a number is a number in YAML. */
function childOf(node: unknown, step: Steps[number]): unknown {
  if (isSeq(node)) return node.get(Number(step), true);
  if (!isMap(node)) return undefined;
  return node.get(step, true) ?? (/^\d+$/.test(String(step)) ? node.get(Number(step), true) : undefined);
}

/** An object of a text, and a function that finds where its fields are. */
export type Placed = { readonly object: unknown; readonly positionOf: SourceDocument['positionOf'] };

/** The objects of a YAML text, those of Lists too, and what is not YAML or refused by kubectl. */
export function readPlaced(text: string): Pick<Documents, 'faults'> & { readonly placed: readonly Placed[] } {
  const { documents, faults } = readDocuments(text);
  const lists = documents.filter(({ value }) => isPlainList(value));
  const others = documents.filter(document => !lists.includes(document));
  const placed = others.flatMap(({ value, positionOf }) =>
    value === null || value === undefined
      ? []
      : objectsIn(value).map(({ object, steps }) => ({
          object,
          positionOf: (inner: Steps) => positionOf([...steps, ...inner]),
        })),
  );
  const refused = lists.map(({ positionOf }) => ({ ...positionOf([]), message: PLAIN_LIST }));
  return { faults: [...faults, ...refused], placed };
}

/** Whether a value is a list of objects, and not of another tool. */
function isPlainList(value: unknown): boolean {
  return Array.isArray(value) && value.some(item => isRecord(item) && item['apiVersion'] !== undefined);
}

const PLAIN_LIST =
  'these objects are in a plain list, which kubectl refuses, too: put --- between them, or kind: List and items: around them';

type Inner = { readonly object: unknown; readonly steps: Steps };

/** The object of a document, or the items of a list of any kind, also below others: kubectl applies them in the same way. */
function objectsIn(value: unknown): readonly Inner[] {
  if (!isRecord(value)) return [{ object: value, steps: [] }];
  const { apiVersion, kind, items } = value;
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items))
    return [{ object: value, steps: [] }];
  // The API server leaves out what its lists of one kind have in common.
  const common = kind === 'List' ? {} : { apiVersion, kind: kind.slice(0, -'List'.length) };
  return (items as readonly unknown[]).flatMap((item, index) =>
    objectsIn(isRecord(item) && item['kind'] === undefined ? { ...common, ...item } : item).map(
      ({ object, steps }) => ({ object, steps: ['items', String(index), ...steps] }),
    ),
  );
}
