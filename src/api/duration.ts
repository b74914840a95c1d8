const UNITS_NS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3, // U+00B5, the micro sign
  μs: 1e3, // U+03BC, the Greek letter
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};

/** One number and its unit; either side of the point may be missing. */
const PART = /([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)/y;

/** A number where that is exact, else a big integer; so equal durations are equal values, and all can be compared. */
export type Nanoseconds = number | bigint;

/** What fits into the 64 bits in which Go counts nanoseconds. */
const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n];

/** Nanoseconds of a duration such as 500ms, 1.5s or 1m30s, as Go reads it, or nothing where it is none. */
export function durationNs(text: string): Nanoseconds | undefined {
  const isNegative = text.startsWith('-');
  const start = isNegative || text.startsWith('+') ? 1 : 0;
  if (text.length - start === 1 && text.endsWith('0')) return 0;
  const sum = sumOfParts(text, start);
  if (sum === undefined || sum === 0) return sum;
  const signed = isNegative ? -sum : sum;
  return signed < LEAST || signed > MOST ? undefined : signed;
}

/** Milliseconds of a duration, or nothing where it is none. */
export function durationMs(text: string): number | undefined {
  const ns = durationNs(text);
  return ns === undefined ? undefined : Number(ns) / 1e6;
}

function sumOfParts(text: string, start: number): Nanoseconds | undefined {
  if (start === text.length) return undefined;
  let sum: Nanoseconds = 0;
  for (let at = start; at < text.length; at = PART.lastIndex) {
    PART.lastIndex = at;
    const part = PART.exec(text);
    if (!part || (!part[1] && !part[2])) return undefined;
    sum = added(sum, partNs(part[1] ?? '', part[2] ?? '', UNITS_NS[part[3] ?? ''] ?? 0));
  }
  return sum;
}

function added(a: Nanoseconds, b: Nanoseconds): Nanoseconds {
  if (typeof a === 'number' && typeof b === 'number' && Number.isSafeInteger(a + b)) return a + b;
  return shortest(BigInt(a) + BigInt(b));
}

function shortest(ns: bigint): Nanoseconds {
  const number = Number(ns);
  return Number.isSafeInteger(number) ? number : ns;
}

/** Go drops what is less than a nanosecond. */
function partNs(whole: string, fraction: string, unitNs: number): Nanoseconds {
  const ns = Number(whole) * unitNs;
  if (fraction === '' && whole.length <= 15 && Number.isSafeInteger(ns)) return ns;
  const decimals = (BigInt(fraction === '' ? 0 : fraction) * BigInt(unitNs)) / 10n ** BigInt(fraction.length);
  return shortest(BigInt(whole === '' ? 0 : whole) * BigInt(unitNs) + decimals);
}
