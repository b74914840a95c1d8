import type { Runtime } from 'node:inspector';
import { findSourceMap } from 'node:module';
import type { SourceMapping } from 'node:module';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Function, Line, Location, Profile, Sample, StringTable, ValueType } from 'pprof-format';

/** One call in a stack. */
export type Frame = {
  readonly name: string;
  readonly file: string;
  /** Where the function begins. */
  readonly line: number;
};

/** A stack, the innermost call first, and a number for each kind of value. */
export type StackSample = { readonly stack: readonly Frame[]; readonly values: readonly number[] };

/** The name and unit of a value. */
type ValueKind = { readonly type: string; readonly unit: string };

/** A profile in pprof's terms. */
export type ProfileContents = {
  readonly kinds: readonly ValueKind[];
  readonly samples: readonly StackSample[];
  /** The sampling period. */
  readonly period: ValueKind & { readonly every: number };
  readonly timeMs: number;
  readonly durationMs?: number;
  /** Sentences about what the numbers mean, which pprof prints with -comments. */
  readonly comments?: readonly string[];
};

const compress = promisify(gzip);

/** The file that `go tool pprof` reads: a compressed protobuf. The last kind of value is the one that it shows. */
export async function encodeProfile(contents: ProfileContents): Promise<Uint8Array> {
  const { kinds, samples, period, timeMs, durationMs = 0, comments = [] } = contents;
  const texts = new StringTable();
  const places = new Places(texts);
  const kindOf = ({ type, unit }: ValueKind): ValueType =>
    new ValueType({ type: texts.dedup(type), unit: texts.dedup(unit) });
  const profile = new Profile({
    sampleType: kinds.map(kindOf),
    sample: samples.map(
      ({ stack, values }) =>
        new Sample({ locationId: stack.map(frame => places.idOf(frame)), value: values.map(Math.round) }),
    ),
    periodType: kindOf(period),
    period: Math.round(period.every),
    timeNanos: BigInt(Math.round(timeMs)) * 1_000_000n,
    durationNanos: BigInt(Math.round(durationMs)) * 1_000_000n,
    comment: comments.map(comment => texts.dedup(comment)),
    defaultSampleType: texts.dedup(kinds.at(-1)?.type ?? ''),
    location: places.locations,
    function: places.functions,
    stringTable: texts,
  });
  return compress(await profile.encodeAsync());
}

/** Functions, each listed once, with one location each. */
class Places {
  readonly functions: Function[] = [];
  readonly locations: Location[] = [];
  readonly #texts: StringTable;
  readonly #ids = new Map<string, number>();

  constructor(texts: StringTable) {
    this.#texts = texts;
  }

  idOf({ name, file, line }: Frame): number {
    const key = `${name}\n${file}\n${line}`;
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    const id = this.locations.length + 1;
    const shown = this.#texts.dedup(name);
    const filename = this.#texts.dedup(file);
    this.functions.push(new Function({ id, name: shown, systemName: shown, filename, startLine: line }));
    this.locations.push(new Location({ id, line: [new Line({ functionId: id, line })] }));
    this.#ids.set(key, id);
    return id;
  }
}

/**
 * A call as V8 reports it, which counts lines from zero, as a frame. Where Node was started with source maps on it is one
 * in the source that was written. The line is that where the function begins: V8 reports no column inside of it, and a
 * bundle has few lines.
 */
export function frameOf(call: Runtime.CallFrame): Frame {
  const file = pathOf(call.url);
  const place = writtenAt(file, call.lineNumber, call.columnNumber) ?? { file, line: call.lineNumber + 1 };
  return { name: nameOf(call, place), ...place };
}

/** Functions without a name would all look like one to pprof, which compares names. */
function nameOf({ functionName, columnNumber }: Runtime.CallFrame, { file, line }: SourceLine): string {
  if (functionName !== '') return functionName;
  return file === '' ? '(anonymous)' : `(anonymous) ${basename(file)}:${line}:${columnNumber + 1}`;
}

type SourceLine = { readonly file: string; readonly line: number };

/** Where a place in a file was written, if Node knows a source map of the file; lines and columns count from zero. */
function writtenAt(file: string, line: number, column: number): SourceLine | undefined {
  if (file === '') return undefined;
  const entry: Partial<SourceMapping> | undefined = findSourceMap(file)?.findEntry(line, column);
  if (entry?.originalSource === undefined || entry.originalLine === undefined) return undefined;
  return { file: pathOf(entry.originalSource), line: entry.originalLine + 1 };
}

function pathOf(url: string): string {
  return url.startsWith('file://') ? fileURLToPath(url) : url;
}
