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

/** What fits into the 64 bits in which Go counts nanoseconds. */
const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n];

/** Nanoseconds of a duration such as 500ms, 1.5s or 1m30s, as Go reads it, or nothing where it is none. */
export function durationNs(text: string): bigint | undefined {
  const isNegative = text.startsWith('-');
  const start = isNegative || text.startsWith('+') ? 1 : 0;
  if (text.length - start === 1 && text.endsWith('0')) return 0n;
  const sum = sumOfParts(text, start);
  if (sum === undefined) return undefined;
  const signed = isNegative ? -sum : sum;
  return signed < LEAST || signed > MOST ? undefined : signed;
}

/** Milliseconds of a duration, or nothing where it is none. */
export function durationMs(text: string): number | undefined {
  const ns = durationNs(text);
  return ns === undefined ? undefined : Number(ns) / 1e6;
}

function sumOfParts(text: string, start: number): bigint | undefined {
  if (start === text.length) return undefined;
  let sum = 0n;
  for (let at = start; at < text.length; at = PART.lastIndex) {
    PART.lastIndex = at;
    const [, whole = '', fraction = '', unit = ''] = PART.exec(text) ?? [];
    if (whole === '' && fraction === '') return undefined;
    sum += partNs(whole, fraction, UNITS_NS[unit] ?? 0);
  }
  return sum;
}

/** Exact where the number is small, as nearly all are; by big integers elsewhere. */
function partNs(whole: string, fraction: string, unitNs: number): bigint {
  const ns = Number(whole) * unitNs;
  const isExact = whole.length <= 15 && Number.isSafeInteger(ns);
  const wholeNs = isExact ? BigInt(ns) : BigInt(whole) * BigInt(unitNs);
  if (fraction === '') return wholeNs;
  return wholeNs + (BigInt(fraction) * BigInt(unitNs)) / 10n ** BigInt(fraction.length);
}
