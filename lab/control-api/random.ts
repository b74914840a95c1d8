/** Random numbers and texts that depend on a seed alone, so that a test that fails can be repeated. */
export type Random = {
  /** From 0 to 1, without 1. */
  readonly fraction: () => number;
  /** A whole number from the first to the last, both included. */
  readonly between: (first: number, last: number) => number;
  /** Characters of an alphabet. */
  readonly text: (length: number, alphabet: string) => string;
  /** Hexadecimal digits. */
  readonly hex: (length: number) => string;
};

export const ALPHANUMERIC = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789';
export const DECIMAL = '123456789';

/** The generator "mulberry32". */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const fraction = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (first: number, last: number) => first + Math.floor(fraction() * (last - first + 1));
  const text = (length: number, alphabet: string) => {
    let made = '';
    while (made.length < length) made += alphabet.charAt(between(0, alphabet.length - 1));
    return made;
  };
  const hex = (length: number) => {
    let made = '';
    while (made.length < length)
      made += between(0, 2 ** 32 - 1)
        .toString(16)
        .padStart(8, '0');
    return made.slice(0, length);
  };
  return { fraction, between, text, hex };
}
