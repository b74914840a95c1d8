import { isAlias, isMap, isNode, isSeq, LineCounter, parseAllDocuments, visit } from 'yaml';
import type { Document } from 'yaml';

/** One document of a YAML file, and a way to find the line of anything in it. */
export type SourceDocument = {
  readonly value: unknown;
  readonly lineOf: (steps: readonly string[]) => number;
};

/** Why a text is not YAML, and where. */
export type SyntaxFault = { readonly line: number; readonly message: string };

/** Reads a YAML text (JSON is YAML too) as kubectl does: by YAML 1.1, where yes is true. */
export function readDocuments(text: string): {
  readonly documents: readonly SourceDocument[];
  readonly faults: readonly SyntaxFault[];
} {
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, {
    lineCounter: lines,
    prettyErrors: false,
    version: '1.1',
    customTags: tags => tags.filter(tag => !NOT_IN_KUBERNETES.includes(tagName(tag))),
  });
  const list = Array.isArray(parsed) ? parsed : [];
  const faults = list.flatMap(document =>
    document.errors.map(({ pos, message }) => ({ line: lines.linePos(pos[0]).line, message })),
  );
  if (faults.length > 0) return { documents: [], faults };
  return readValues(list, lines);
}

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

function readValues(list: readonly Document[], lines: LineCounter) {
  const documents: SourceDocument[] = [];
  const faults: SyntaxFault[] = [];
  for (const document of list) {
    const circle = findCircle(document);
    if (circle !== undefined) {
      faults.push({ line: lines.linePos(circle).line, message: 'an anchor must not contain itself' });
      continue;
    }
    try {
      documents.push({ value: document.toJS(), lineOf: steps => lineOf(document, steps, lines) });
    } catch (error) {
      faults.push({ line: 1, message: error instanceof Error ? error.message : 'cannot be read' });
    }
  }
  return { documents, faults };
}

/** Where an alias stands inside the very thing that it names. */
function findCircle(document: Document): number | undefined {
  let found: number | undefined;
  visit(document, {
    Alias: (_key, alias, ancestors) => {
      const isInside = ancestors.some(
        node => isNode(node) && !isAlias(node) && anchorOf(node) === alias.source,
      );
      if (!isInside) return undefined;
      found = alias.range?.[0] ?? 0;
      return visit.BREAK;
    },
  });
  return found;
}

function anchorOf(node: object): unknown {
  return 'anchor' in node ? node.anchor : undefined;
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
