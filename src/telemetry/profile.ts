import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Function, Line, Location, Profile, Sample, StringTable, ValueType } from 'pprof-format';

/** One call in a stack: which function, and the line in it where it is known. */
export type Frame = {
  readonly name: string;
  readonly file: string;
  /** Where the function begins. */
  readonly startLine: number;
  readonly line: number;
};

/** A stack, the innermost call first, and a number for each kind of value. */
export type StackSample = { readonly stack: readonly Frame[]; readonly values: readonly number[] };

/** What a number of a profile counts, and in which unit. */
type ValueKind = { readonly type: string; readonly unit: string };

/** Everything that a profile tells. */
export type ProfileContents = {
  readonly kinds: readonly ValueKind[];
  readonly samples: readonly StackSample[];
  /** What was measured every how often. */
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

/** Functions and lines, each listed once. */
class Places {
  readonly functions: Function[] = [];
  readonly locations: Location[] = [];
  readonly #texts: StringTable;
  readonly #functionIds = new Map<string, number>();
  readonly #locationIds = new Map<string, number>();

  constructor(texts: StringTable) {
    this.#texts = texts;
  }

  idOf(frame: Frame): number {
    const functionId = this.#functionIdOf(frame);
    const key = `${functionId}:${frame.line}`;
    const known = this.#locationIds.get(key);
    if (known !== undefined) return known;
    const id = this.locations.length + 1;
    this.locations.push(new Location({ id, line: [new Line({ functionId, line: frame.line })] }));
    this.#locationIds.set(key, id);
    return id;
  }

  #functionIdOf({ name, file, startLine }: Frame): number {
    const key = `${name}\n${file}\n${startLine}`;
    const known = this.#functionIds.get(key);
    if (known !== undefined) return known;
    const id = this.functions.length + 1;
    const shown = this.#texts.dedup(name);
    this.functions.push(
      new Function({ id, name: shown, systemName: shown, filename: this.#texts.dedup(file), startLine }),
    );
    this.#functionIds.set(key, id);
    return id;
  }
}
