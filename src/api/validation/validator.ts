/** A fault found by a generated structure check. */
export type StructureError = {
  readonly instancePath: string;
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
};

/** Checks types, bounds, patterns and uniqueness; leaves what it found in `errors`. */
type Structure = {
  (value: unknown): boolean;
  errors?: readonly StructureError[] | null;
};

/** The message of a rule, and the field that it is about. */
export type RuleText = { readonly message: string; readonly fieldPath: string };

/** All that is generated to validate one kind. */
export type GeneratedValidator = {
  /** A copy without unknown fields and nulls, with defaults. */
  readonly shape: (value: unknown) => unknown;
  readonly structure: Structure;
  /** Reports the index of each rule that fails, and the path of the value that it is about. */
  readonly evaluate: (root: unknown, report: (index: number, path: string) => void) => void;
  readonly rules: readonly RuleText[];
  readonly outline: Outline;
};

/** The fields of a value and their types: the part of a schema that error messages and `check` need. */
export type Outline = {
  readonly is:
    | 'text'
    | 'date-time'
    | 'integer'
    | 'number'
    | 'boolean'
    | 'int-or-string'
    | 'list'
    | 'map'
    | 'object'
    /** Of any type. */
    | 'any';
  /** A valid value, as a noun: "a port (1 to 65535)". */
  readonly expect?: string;
  /** The value may be a secret and is never shown. */
  readonly isSensitive?: true;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  /** What matches the pattern, as a noun. */
  readonly form?: string;
  readonly items?: Outline;
  readonly values?: Outline;
  readonly fields?: Readonly<Record<string, Outline>>;
  /** Fields that are dropped without a warning. */
  readonly ignored?: readonly string[];
  /** Fields that are not listed are kept. */
  readonly isOpen?: true;
};
