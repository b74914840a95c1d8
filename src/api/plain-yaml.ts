/*
 * Nearly all files of declarations are plain: maps and lists by indentation, of short texts and numbers. Those are read
 * here, many times faster than by the library, which knows all of YAML. What is the least unusual is not read here,
 * nor is anything that is wrong, so that whatever is read means the same by both.
 */

type Line = { readonly indent: number; readonly text: string };

/** How far a document has been read. */
type Cursor = { readonly lines: readonly Line[]; at: number };

/** Thrown inside alone. */
class NotPlain extends Error {}

/** The values of the documents of a text, or nothing where it is not plain. */
export function readPlainDocuments(text: string): readonly unknown[] | undefined {
  if (NOT_PRINTABLE.test(text)) return undefined;
  try {
    return documentsOf(text).map(readDocument);
  } catch (thrown) {
    if (thrown instanceof NotPlain) return undefined;
    throw thrown;
  }
}

/** Anything but printable ASCII and the end of a line. */
const NOT_PRINTABLE = /[^\n -~]/;

/** The lines that say something. */
function documentsOf(text: string): readonly (readonly Line[])[] {
  const documents: Line[][] = [[]];
  for (const line of text.split('\n')) {
    const content = line.trim();
    if (line.startsWith('---')) {
      if (line !== '---') throw new NotPlain();
      documents.push([]);
    } else if (content !== '' && !content.startsWith('#')) {
      documents.at(-1)?.push({ indent: line.length - line.trimStart().length, text: content });
    }
  }
  if (documents.length > 1 && documents[0]?.length === 0) documents.shift();
  return documents;
}

function readDocument(lines: readonly Line[]): unknown {
  const cursor = { lines, at: 0 };
  const [first] = lines;
  if (first?.indent !== 0) throw new NotPlain();
  const value = readBlock(cursor, 0);
  if (cursor.at < lines.length) throw new NotPlain();
  return value;
}

const DEEPEST = 100;

function readBlock(cursor: Cursor, indent: number): unknown {
  if (indent > DEEPEST) throw new NotPlain();
  return cursor.lines[cursor.at]?.text.startsWith('- ') ? readList(cursor, indent) : readMap(cursor, indent);
}

function readList(cursor: Cursor, indent: number): readonly unknown[] {
  const list: unknown[] = [];
  for (let line = cursor.lines[cursor.at]; line?.indent === indent; line = cursor.lines[cursor.at]) {
    if (!line.text.startsWith('- ')) break;
    const inner = line.text.slice(2).trimStart();
    const innerIndent = indent + line.text.length - inner.length;
    if (inner.startsWith('- ')) throw new NotPlain();
    const entry = ENTRY.exec(inner);
    if (!entry) cursor.at++;
    list.push(entry ? readMap(cursor, innerIndent, entry) : readScalar(inner));
    if ((cursor.lines[cursor.at]?.indent ?? 0) > indent) throw new NotPlain();
  }
  return list;
}

/** A key that is nothing else, and what stands behind it on its line. */
const ENTRY = /^(?<key>[A-Za-z_][\w./-]{0,250}):(?: +(?<value>.*))?$/;

/** The first entry may stand on the line of the list that the map is in. */
function readMap(cursor: Cursor, indent: number, first?: RegExpExecArray): Readonly<Record<string, unknown>> {
  const map: Record<string, unknown> = {};
  let entry = first ?? nextEntry(cursor, indent);
  if (!entry) throw new NotPlain();
  for (; entry; entry = nextEntry(cursor, indent)) {
    const { key = '', value = '' } = entry.groups ?? {};
    if (!isPlainKey(key, map)) throw new NotPlain();
    cursor.at++;
    map[key] = value === '' || value.startsWith('#') ? readBelow(cursor, indent) : readScalar(value);
    if ((cursor.lines[cursor.at]?.indent ?? 0) > indent) throw new NotPlain();
  }
  return map;
}

function nextEntry(cursor: Cursor, indent: number): RegExpExecArray | undefined {
  const line = cursor.lines[cursor.at];
  if (line?.indent !== indent || line.text.startsWith('- ')) return undefined;
  const entry = ENTRY.exec(line.text);
  if (!entry) throw new NotPlain();
  return entry;
}

/** What stands below a key: a block further in, a list just below it, or nothing. */
function readBelow(cursor: Cursor, indent: number): unknown {
  const line = cursor.lines[cursor.at];
  if (!line || line.indent < indent) return null;
  if (line.indent > indent) return readBlock(cursor, line.indent);
  return line.text.startsWith('- ') ? readList(cursor, indent) : null;
}

/** What YAML 1.1 takes for true, false and nothing, or might. */
const WORD = /^(y|n|yes|no|on|off|true|false|null)$/i;

const INTEGER = /^(0|[1-9]\d{0,14})$/;
const QUOTED = /^(?:"(?<double>[^"\\]*)"|'(?<single>[^']*)')(?: +#.*)?$/;
const BARE = /^(?<bare>[A-Za-z0-9/][\w./:@+=,-]*(?: +[\w./@+=,(][\w./:@+=,()'-]*)*)(?: +#.*)?$/;

/** A map or a list on one line, with no other inside. */
const FLOW = /^(?:\{(?<map>[^[\]{}#]*)\}|\[(?<list>[^[\]{}#]*)\])$/;

/** What begins with a digit and has one of these is no number of any sort: 100.64.0.1, 30s, 2026-01-31. */
const NO_NUMBER = /^\d+\.\d+\.|[g-np-wyzG-WYZ]|^\d{4}-\d\d-\d\d$/;

function readScalar(text: string): unknown {
  const { double, single } = QUOTED.exec(text)?.groups ?? {};
  if (double !== undefined || single !== undefined) return double ?? single;
  const { map, list } = FLOW.exec(text)?.groups ?? {};
  if (map !== undefined) return readFlowMap(map);
  if (list !== undefined) return splitFlow(list).map(readFlowScalar);
  const bare = BARE.exec(text)?.groups?.['bare'];
  if (bare === undefined || bare.endsWith(':') || bare.includes(': ')) throw new NotPlain();
  if (bare === 'true' || bare === 'false') return bare === 'true';
  if (INTEGER.test(bare)) return Number(bare);
  const isUnclear = WORD.test(bare) || (/^\d/.test(bare) && !NO_NUMBER.test(bare));
  if (isUnclear) throw new NotPlain();
  return bare;
}

function readFlowMap(text: string): Readonly<Record<string, unknown>> {
  const map: Record<string, unknown> = {};
  for (const item of splitFlow(text)) {
    const { key = '', value = '' } = ENTRY.exec(item)?.groups ?? {};
    if (!isPlainKey(key, map)) throw new NotPlain();
    map[key] = readFlowScalar(value);
  }
  return map;
}

/** A comma inside quotes splits them, and then neither half is plain. */
function splitFlow(text: string): readonly string[] {
  return text.trim() === '' ? [] : text.split(',').map(item => item.trim());
}

function readFlowScalar(text: string): unknown {
  if (text.includes(':') && !QUOTED.test(text)) throw new NotPlain();
  return readScalar(text);
}

function isPlainKey(key: string, map: object): boolean {
  return key !== '' && !WORD.test(key) && key !== '__proto__' && !Object.hasOwn(map, key);
}
