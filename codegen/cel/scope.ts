import { describe } from './type.ts';
import type { CelType } from './type.ts';

/** JavaScript for a CEL expression, the type it has, and whether it may fail. */
export type Compiled = {
  readonly js: string;
  readonly type: CelType;
  /** Whether its evaluation may fail; the surrounding expression must then follow CEL's rules for errors. */
  readonly mayFail: boolean;
};

/** The names that an expression may use, and the constants of its module. */
export type Scope = {
  readonly names: ReadonlyMap<string, Compiled>;
  /** The optional fields, as JavaScript, that exist wherever this expression is evaluated. */
  readonly present: ReadonlySet<string>;
  readonly constants: Constants;
  /** How many macros enclose this expression. */
  readonly depth: number;
};

/** Constants that generated code makes once when it is loaded: patterns, address ranges, durations. */
export class Constants {
  readonly #names = new Map<string, string>();
  readonly #functions = new Set<string>();

  /** The name of a constant with this JavaScript; the same code gives the same name. */
  named(prefix: string, js: string): string {
    const name = this.#names.get(js) ?? `${prefix}${this.#names.size}`;
    this.#names.set(js, name);
    return name;
  }

  /** The name of a function of the run-time library, which the module then imports. */
  use(name: string): string {
    this.#functions.add(name);
    return name;
  }

  /** All constants as declarations. */
  declarations(): readonly string[] {
    return [...this.#names].map(([js, name]) => `const ${name} = ${js};`);
  }

  /** The functions to import. */
  imports(): readonly string[] {
    return [...this.#functions].sort();
  }
}

/** An expression cannot be compiled; the rule's place is added by the caller. */
export class Unsupported extends Error {
  override readonly name = 'Unsupported';
}

/** The JavaScript of an expression that must be true or false. */
export function conditionOf({ js, type }: Compiled): string {
  if (type.is !== 'bool') throw new Unsupported(`uses ${describe(type)} as a condition`);
  return js;
}
