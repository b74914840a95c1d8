import type { Outline } from './validator.ts';

/** An error in an object: its path, and a message with what is valid. */
export type Fault = {
  /** Such as spec.endpoints[2].port. */
  readonly path: string;
  /** The path as a list of steps. */
  readonly steps: readonly string[];
  readonly message: string;
};

/** The fault on one line. */
export function formatFault({ path, message }: Fault): string {
  return path === '' ? message : `${path}: ${message}`;
}

/** The path from an object's root to a value: field names, map keys and list indexes. */
export type Steps = readonly string[];

/** The outline of the value at a path, if the outline has it. */
export function outlineAt(root: Outline, steps: Steps): Outline | undefined {
  return steps.reduce<Outline | undefined>((at, step) => at && stepInto(at, step), root);
}

function stepInto(outline: Outline, step: string): Outline | undefined {
  if (outline.items) return outline.items;
  if (outline.values) return outline.values;
  return outline.fields && Object.hasOwn(outline.fields, step) ? outline.fields[step] : undefined;
}

/** The value at a path. */
export function valueAt(root: unknown, steps: Steps): unknown {
  return steps.reduce<unknown>(
    (at, step) =>
      typeof at === 'object' && at !== null && Object.hasOwn(at, step)
        ? (at as Record<string, unknown>)[step]
        : undefined,
    root,
  );
}

/** The steps to a fault of an object, with indexes of lists as numbers. */
export function typedSteps(object: unknown, steps: Steps): readonly (string | number)[] {
  return steps.map((step, index) =>
    Array.isArray(valueAt(object, steps.slice(0, index))) ? Number(step) : step,
  );
}

/** The text of a path: spec.endpoints[2].metadata["a.b"]. */
export function formatPath(root: Outline, steps: Steps): string {
  return steps
    .map((step, index) => formatStep(outlineAt(root, steps.slice(0, index)), step, index === 0))
    .join('');
}

function formatStep(parent: Outline | undefined, step: string, isFirst: boolean): string {
  if (parent?.items) return `[${step}]`;
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(step)) return `[${JSON.stringify(step.slice(0, MAX_KEY_LENGTH))}]`;
  return isFirst ? step : `.${step}`;
}

const MAX_KEY_LENGTH = 64;

/** The steps of a JSON pointer. */
export function stepsOfPointer(pointer: string): Steps {
  return pointer
    .split('/')
    .slice(1)
    .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The steps of a path as generated rules report it: names and indexes only. */
export function stepsOfPath(path: string): Steps {
  return path.split(/[.[\]]+/).filter(step => step !== '');
}
