import { formatFault } from '../src/api/validation/fault.ts';
import { judge } from '../src/api/validation/validate.ts';
import { fieldsBeyond } from '../src/api/validation/unknown-fields.ts';
import type { GeneratedValidator } from '../src/api/validation/validator.ts';
import { readDocuments } from '../src/api/yaml-documents.ts';
import { outline } from './generated/outline.ts';
import { evaluate, rules } from './generated/rules.ts';
import { shape } from './generated/shape.ts';
import { structure } from './generated/structure.ts';
import type { Installation } from './generated/types.ts';
import { excessiveVariables } from './mesh-pods.ts';
import { sharedNamespaces } from './namespaces.ts';
import { excessiveRequests } from './quantity.ts';

const validator: GeneratedValidator = { shape, structure, evaluate, rules, outline };

/** A configuration with its defaults, or each thing that is wrong with it on a line of its own. */
export type ReadConfiguration =
  | { readonly installation: Installation; readonly faults?: undefined }
  | { readonly faults: readonly string[] };

/** Reads the text of a configuration: YAML or JSON, one document at most. */
export function readConfiguration(text: string): ReadConfiguration {
  const { documents, faults } = readDocuments(text);
  if (faults.length > 0) return { faults: faults.map(({ line, message }) => `line ${line}: ${message}`) };
  if (documents.length > 1) return { faults: ['holds more than one YAML document: keep one'] };
  return judgeConfiguration(documents[0]?.value ?? {});
}

/** Judges the value of a configuration. Unlike the API server it takes no unknown fields: one is a knob that does nothing. */
export function judgeConfiguration(value: unknown): ReadConfiguration {
  const unknown = fieldsBeyond(outline, value).map(({ path, meant }) =>
    formatFault({
      path,
      steps: [],
      message: `there is no such field${meant === undefined ? '' : `; did you mean ${meant}?`}`,
    }),
  );
  const verdict = judge<Installation>(validator, value);
  const wrong = verdict.valid
    ? [excessiveRequests, excessiveVariables, sharedNamespaces].flatMap(faultsOf => faultsOf(verdict.object))
    : verdict.faults.map(formatFault);
  const faults = [...unknown, ...wrong];
  return verdict.valid && faults.length === 0 ? { installation: verdict.object } : { faults };
}
