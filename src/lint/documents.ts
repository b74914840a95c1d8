import { LineCounter, parseAllDocuments } from 'yaml';
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
    try {
      documents.push({ value: document.toJS(), lineOf: steps => lineOf(document, steps, lines) });
    } catch (error) {
      faults.push({ line: 1, message: error instanceof Error ? error.message : 'cannot be read' });
    }
  }
  return { documents, faults };
}

/** The line of the value at the end of the steps, or of the nearest thing around it. */
function lineOf(document: Document, steps: readonly string[], lines: LineCounter): number {
  for (let length = steps.length; length >= 0; length--) {
    const node = length === 0 ? document.contents : document.getIn(indexes(steps.slice(0, length)), true);
    const range = typeof node === 'object' && node !== null && 'range' in node ? node.range : undefined;
    if (Array.isArray(range) && typeof range[0] === 'number') return lines.linePos(range[0]).line;
  }
  return 1;
}

/** YAML lists want numbers. */
function indexes(steps: readonly string[]): readonly (string | number)[] {
  return steps.map(step => (/^\d+$/.test(step) ? Number(step) : step));
}
