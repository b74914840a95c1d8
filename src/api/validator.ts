import type { Outline } from './outline.ts';

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

/** What is said where a rule fails. */
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
