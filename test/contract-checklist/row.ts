/** A test: its file, and its title there or the sentence of a case in a table of it.each. */
export type NamedTest = readonly [file: string, title: string];

/** A row of a table of the contract. */
export type Row = {
  /** The cells as the contract has them. */
  readonly cells: readonly [name: string, ...others: readonly string[]];
  /** The tests that fail without what the row promises. */
  readonly tests: readonly NamedTest[];
};

/** A table, or a list of sentences, of the contract. */
export type Table = {
  readonly name: string;
  /** Where the fields of a table of fields are in an object: the kind, and the path before each name. */
  readonly fieldsOf?: { readonly kind: string; readonly path: string };
  readonly columns: readonly string[];
  readonly rows: readonly Row[];
};

/** A row from its cells, and the tests that cover it. */
export function row(cells: Row['cells'], ...tests: readonly NamedTest[]): Row {
  return { cells, tests };
}
