import type { Runtime } from 'node:inspector';
import { findSourceMap } from 'node:module';
import type { SourceMapping } from 'node:module';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Frame } from './profile.ts';

/**
 * A call as V8 tells it, which counts lines from zero, as a frame. Where Node was started with source maps on it is one
 * in the source that was written, with the line where the function begins: a map cannot be asked for the line inside of
 * it, because V8 tells no column and a bundle has few lines.
 */
export function frameOf(call: Runtime.CallFrame, line?: number): Frame {
  const file = pathOf(call.url);
  const written = writtenAt(file, call.lineNumber, call.columnNumber);
  const place = written ?? { file, line: call.lineNumber + 1 };
  const at = written ? written.line : (line ?? place.line);
  return { name: nameOf(call, place), file: place.file, startLine: place.line, line: at };
}

/** Functions without a name would all look like one to pprof, which compares names. */
function nameOf({ functionName, columnNumber }: Runtime.CallFrame, { file, line }: Place): string {
  if (functionName !== '') return functionName;
  return file === '' ? '(anonymous)' : `(anonymous) ${basename(file)}:${line}:${columnNumber + 1}`;
}

type Place = { readonly file: string; readonly line: number };

/** Where a place in a file was written, if Node knows a source map of the file; lines and columns count from zero. */
function writtenAt(file: string, line: number, column: number): Place | undefined {
  if (file === '') return undefined;
  const entry: Partial<SourceMapping> | undefined = findSourceMap(file)?.findEntry(line, column);
  if (entry?.originalSource === undefined || entry.originalLine === undefined) return undefined;
  return { file: pathOf(entry.originalSource), line: entry.originalLine + 1 };
}

function pathOf(url: string): string {
  return url.startsWith('file://') ? fileURLToPath(url) : url;
}
