import type { Violations } from './source.ts';

/** A few files in memory, and what a rule says about them: nothing where `says` is absent. */
export type Example = {
  /** The rest of a sentence that begins with the rule: "refuses a default export". */
  readonly it: string;
  readonly files: Readonly<Record<string, string>>;
  readonly says?: Violations;
};
