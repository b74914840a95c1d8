import { isAlias, isMap, isNode, isPair, isScalar, isSeq, LineCounter, parseAllDocuments, visit } from 'yaml';
import type { Document, ScalarTag, Tags } from 'yaml';
import { readPlainDocuments } from './plain-yaml.ts';

/** One document of a YAML file, and a way to find the line of anything in it. */
export type SourceDocument = {
  readonly value: unknown;
  readonly lineOf: (steps: readonly string[]) => number;
};

/** Why a text is not YAML, and where. */
type SyntaxFault = { readonly line: number; readonly message: string };

/** What is in a text. */
export type Documents = {
  readonly documents: readonly SourceDocument[];
  readonly faults: readonly SyntaxFault[];
};

/** Reads a YAML text (JSON is YAML too) as kubectl does: by YAML 1.1, where yes is true. */
export function readDocuments(text: string): Documents {
  const plain = readPlainDocuments(text);
  if (!plain) return readAnyDocuments(text);
  // Lines are asked for only where something is wrong.
  let slowly: Documents | undefined;
  const lineOf = (at: number, steps: readonly string[]) => {
    slowly ??= readAnyDocuments(text);
    return slowly.documents[at]?.lineOf(steps) ?? 1;
  };
  return { documents: plain.map((value, at) => ({ value, lineOf: steps => lineOf(at, steps) })), faults: [] };
}

/** The same, also of texts that are not plain. */
export function readAnyDocuments(text: string): Documents {
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, {
    lineCounter: lines,
    prettyErrors: false,
    version: '1.1',
    // The library compares each key with each other; findRepeatedKey does it in one pass.
    uniqueKeys: false,
    logLevel: 'error',
    customTags: tags => [
      OCTAL,
      ...tags.filter(tag => !NOT_IN_KUBERNETES.includes(tagName(tag))).map(withRealNumbers),
    ],
  });
  const list: readonly Document[] = Array.isArray(parsed) ? parsed : [];
  const read = list.map(document => readDocument(document, lines));
  return {
    documents: read.flatMap(one => ('document' in one ? [one.document] : [])),
    faults: read.flatMap(one => ('fault' in one ? [one.fault] : [])),
  };
}

type Read = { readonly document: SourceDocument } | { readonly fault: SyntaxFault };

/** A value may be named often, but so many values may be there by name alone, when all names are followed. */
const MOST_NAMED = 1_000_000;

/** The library's own words may repeat what is in the file, and that may be a secret; ours never do. */
function readDocument(document: Document, lines: LineCounter): Read {
  const faultAt = (offset: number, message: string): Read => ({
    fault: { line: lines.linePos(offset).line, message },
  });
  const [first] = document.errors;
  if (first) return faultAt(first.pos[0], SYNTAX[first.code] ?? 'this is not YAML');
  const alias = findBadAlias(document);
  if (alias) return faultAt(alias.offset, alias.why);
  const repeated = findRepeatedKey(document);
  if (repeated !== undefined) return faultAt(repeated, 'a key must be a text that is there once');
  if (countNamed(document) > MOST_NAMED)
    return faultAt(document.range?.[0] ?? 0, 'the aliases of this document stand for too much');
  try {
    const value: unknown = document.toJS({ maxAliasCount: -1 });
    return { document: { value, lineOf: steps => lineOf(document, steps, lines) } };
  } catch {
    return faultAt(document.range?.[0] ?? 0, 'what is merged by << must be maps');
  }
}

/** What is said of each sort of syntax error that users commonly make. */
const SYNTAX: Readonly<Partial<Record<string, string>>> = {
  BAD_INDENT: 'the indentation does not fit what is around it, or a bracket is not closed',
  BAD_SCALAR_START: 'a text that begins with @ or ` needs quotes',
  BAD_DQ_ESCAPE: 'a text in double quotes has an escape that YAML does not know',
  MISSING_CHAR: 'a quote, bracket or comma is missing',
  MULTILINE_IMPLICIT_KEY: 'a key must be on one line; is a quote or a colon missing?',
  TAB_AS_INDENT: 'tabs must not indent: use spaces',
  DUPLICATE_KEY: 'a key must be a text that is there once',
  UNEXPECTED_TOKEN: 'this does not belong here; is a bracket, a quote or a colon wrong?',
};

/** YAML 1.1 has types of its own for these, which the API server takes as texts. */
const NOT_IN_KUBERNETES = [
  'tag:yaml.org,2002:timestamp',
  'tag:yaml.org,2002:int TIME',
  'tag:yaml.org,2002:float TIME',
  'tag:yaml.org,2002:binary',
];

function tagName(tag: unknown): string {
  if (typeof tag !== 'object' || tag === null || !('tag' in tag)) return String(tag);
  return 'format' in tag && typeof tag.format === 'string'
    ? `${String(tag.tag)} ${tag.format}`
    : String(tag.tag);
}

/** YAML 1.2 writes octal numbers so, and kubectl reads them in both ways. */
const OCTAL: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  test: /^[-+]?0o[0-7]+$/,
  resolve: text => Number.parseInt(text.replace('0o', ''), 8),
};

/** The library takes e-1 and a lone dot for numbers, which then are none; kubectl takes them for texts. */
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

/** How many values and keys are in a document because an alias stands for them; no alias is bad. */
function countNamed(document: Document): number {
  const sizes = new Map<string, number>();
  let written = 0;
  const sizeOf = (node: unknown): number => {
    if (isAlias(node)) return sizes.get(node.source) ?? 0;
    if (isPair(node)) return sizeOf(node.key) + sizeOf(node.value);
    if (!isNode(node)) return 0;
    written++;
    let size = 1;
    if (isMap(node) || isSeq(node)) for (const item of node.items) size += sizeOf(item);
    if (node.anchor !== undefined) sizes.set(node.anchor, size);
    return size;
  };
  return sizeOf(document.contents) - written;
}

type BadAlias = { readonly offset: number; readonly why: string };

const MOST_ALIASES = 10_000;

/** The first alias that names nothing, or the very thing that it stands in, or that is one too many. */
function findBadAlias(document: Document): BadAlias | undefined {
  const anchors = new Map<string, unknown>();
  let [count, found]: [number, BadAlias | undefined] = [0, undefined];
  visit(document, {
    Value: (_key, node) => {
      if (node.anchor !== undefined) anchors.set(node.anchor, node);
    },
    Alias: (_key, alias, ancestors) => {
      const meant = anchors.get(alias.source);
      const why = ++count > MOST_ALIASES ? 'there are too many aliases' : whyNot(meant, ancestors);
      if (why === undefined) return undefined;
      found = { offset: alias.range?.[0] ?? 0, why };
      return visit.BREAK;
    },
  });
  return found;
}

function whyNot(meant: unknown, ancestors: readonly unknown[]): string | undefined {
  if (meant === undefined) return 'this names no anchor; put a text that begins with * into quotes';
  return ancestors.includes(meant) ? 'an anchor must not contain itself' : undefined;
}

/** Where a key stands that is there before in its map, or that is not a plain value. */
function findRepeatedKey(document: Document): number | undefined {
  let found: number | undefined;
  visit(document, {
    Map: (_key, map) => {
      const seen = new Set<string>();
      for (const { key } of map.items) {
        const text = isScalar(key) ? String(key.value) : undefined;
        const isMerge = text === '<<';
        if (text !== undefined && (isMerge || !seen.has(text))) seen.add(text);
        else found ??= isNode(key) ? (key.range?.[0] ?? 0) : 0;
      }
      return found === undefined ? undefined : visit.BREAK;
    },
  });
  return found;
}

/** The line of the value at the end of the steps, or of the nearest thing around it. */
function lineOf(document: Document, steps: readonly string[], lines: LineCounter): number {
  const around = [document.contents as unknown];
  for (const step of steps) around.unshift(childOf(around[0], step));
  const found = around.find(node => isNode(node) && node.range);
  return isNode(found) && found.range ? lines.linePos(found.range[0]).line : 1;
}

/** A key may be written as a number, and then it is one. */
function childOf(node: unknown, step: string): unknown {
  if (isSeq(node)) return node.get(Number(step), true);
  if (!isMap(node)) return undefined;
  return node.get(step, true) ?? (/^\d+$/.test(step) ? node.get(Number(step), true) : undefined);
}
