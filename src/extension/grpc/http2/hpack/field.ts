/** A header, as it stands in a table or in a block. */
export type Field = {
  readonly name: string;
  readonly value: string;
  /** What it counts, in tables and in lists. */
  readonly size: number;
  /** Whether it is made of what a field may be made of. */
  readonly isWellFormed: boolean;
};

const OVERHEAD = 32;

/** Names have no upper case, and values nothing that could end them elsewhere. */
const NAME = /^:?[!#$%&'*+\-.^_`|~0-9a-z]+$/;

const NO_VALUE = /[\0\r\n]|^[ \t]|[ \t]$/;

/** A field of which name and value are read as Latin-1, so that each character was a byte. */
export function fieldOf(name: string, value: string): Field {
  const isWellFormed = NAME.test(name) && !NO_VALUE.test(value);
  return { name, value, size: name.length + value.length + OVERHEAD, isWellFormed };
}
