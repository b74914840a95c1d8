const UNITS_NS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n, // U+00B5, the micro sign
  μs: 1_000n, // U+03BC, the Greek letter
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};

/** One number and its unit; either side of the point may be missing. */
const PART = /([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)/y;

/** The range of Go's time.Duration, 64 bits of nanoseconds. */
const [MIN, MAX] = [-(2n ** 63n), 2n ** 63n - 1n];

/** The nanoseconds of a Go duration such as 500ms, 1.5s or 1m30s, or undefined if it is not valid. */
export function durationNs(text: string): bigint | undefined {
  const isNegative = text.startsWith('-');
  const start = isNegative || text.startsWith('+') ? 1 : 0;
  if (text.length - start === 1 && text.endsWith('0')) return 0n;
  if (start === text.length) return undefined;
  let sum = 0n;
  for (let at = start; at < text.length; at = PART.lastIndex) {
    PART.lastIndex = at;
    const [, whole = '', fraction = '', unit = ''] = PART.exec(text) ?? [];
    if (whole === '' && fraction === '') return undefined;
    sum += partNs(whole, fraction, UNITS_NS[unit] ?? 0n);
  }
  const signed = isNegative ? -sum : sum;
  return signed < MIN || signed > MAX ? undefined : signed;
}

/** Go truncates to whole nanoseconds. */
function partNs(whole: string, fraction: string, unitNs: bigint): bigint {
  return BigInt(whole) * unitNs + (BigInt(fraction) * unitNs) / 10n ** BigInt(fraction.length);
}

/** The milliseconds of a Go duration, or undefined if it is not valid. */
export function durationMs(text: string): number | undefined {
  const ns = durationNs(text);
  return ns === undefined ? undefined : Number(ns) / 1e6;
}
