import { compileFunction } from 'node:vm';
import type { Kind } from '../../../codegen/kind.ts';
import { outlineModule } from '../../../codegen/validator/outline.ts';
import { rulesModule } from '../../../codegen/validator/rules.ts';
import { shapeModule } from '../../../codegen/validator/shape.ts';
import { STRUCTURE_FUNCTIONS } from '../../../codegen/validator/structure-keywords.ts';
import { structureModule } from '../../../codegen/validator/structure.ts';
import { importLine } from '../../../codegen/text.ts';
import * as validatorFunctions from '../../../src/api/validation/validator-functions.ts';
import type { GeneratedValidator } from '../../../src/api/validation/validator.ts';

/** The validator that codegen would generate for a kind, evaluated in memory. */
export function evaluateValidator(kind: Kind): GeneratedValidator {
  const parts = Object.entries({ shape: shapeModule, structure: structureModule, outline: outlineModule });
  const own = parts.map(
    ([name, part]) => [name, evaluateModule(part([kind]))[`${name}${kind.name}`]] as const,
  );
  return { ...evaluateModule(rulesModule(kind)), ...Object.fromEntries(own) } as GeneratedValidator;
}

/** The check that structureCode() generates for any schema, evaluated in memory. */
export function evaluateStructure(code: string): GeneratedValidator['structure'] {
  const [imports = ''] = importLine(STRUCTURE_FUNCTIONS, FUNCTIONS);
  return evaluateModule(`${imports}\n${code}`)['structure'] as GeneratedValidator['structure'];
}

/** The modules that generated modules may import. */
const FUNCTIONS = '../validation/validator-functions.ts';
const LIBRARY: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  [FUNCTIONS]: validatorFunctions,
};

/** The exports of a generated module, from its text; it can only use what it imports. */
export function evaluateModule(text: string): Readonly<Record<string, unknown>> {
  const imported = importsOf(text);
  const exported = [...text.matchAll(/^export (?:const|function) (\w+)/gm)].map(([, name]) => name ?? '');
  const body = text
    .replaceAll(/^import .*$/gm, '')
    .replaceAll(/^export /gm, '')
    .replaceAll(/^(const \w+): Outline = /gm, '$1 = ');
  const source = `'use strict';\n${body}\nreturn { ${exported.join(', ')} };`;
  const run = compileFunction(source, Object.keys(imported)) as unknown as Runnable;
  return run(...Object.values(imported));
}

type Runnable = (...imported: readonly unknown[]) => Readonly<Record<string, unknown>>;

function importsOf(text: string): Readonly<Record<string, unknown>> {
  const lines = [...text.matchAll(/^import \{ (.*) \} from '(.*)';$/gm)];
  const entries = lines.flatMap(([, names = '', from = '']) => {
    const library = LIBRARY[from];
    if (!library) throw new Error(`a generated module imports from ${from}`);
    return names.split(', ').map(name => {
      if (!Object.hasOwn(library, name)) throw new Error(`${from} has no ${name}`);
      return [name, library[name]] as const;
    });
  });
  return Object.fromEntries(entries);
}
