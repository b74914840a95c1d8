import type { Violations } from './source.ts';

/** A few files in memory, and the violations that a rule reports: none where `violations` is absent. */
export type Example = {
  /** The rest of a sentence that starts with the rule's name: "refuses a default export". */
  readonly it: string;
  readonly files: Readonly<Record<string, string>>;
  readonly violations?: Violations;
};
