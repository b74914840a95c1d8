/** What generated rules call: the CEL functions that JavaScript does not have. A throw means that a rule fails. */
import { durationNs } from './duration.ts';
import { familyOf } from './ip.ts';

export { containsIP, parseCidr as cidr } from './ip.ts';

/**
 * A rule used a field that is not there, which CEL calls an error.
 * @public called by generated rules that use a field without has()
 */
export function absent(field: string): never {
  throw new TypeError(`no such key: ${field}`);
}

/** Whether a rule holds; one that cannot be evaluated does not. */
export function holds<T>(rule: (self: T) => boolean, self: T): boolean {
  try {
    return rule(self);
  } catch {
    return false;
  }
}

/**
 * CEL's || where the left side may fail: a failure counts only if the right side does not decide.
 * @public called by generated rules
 */
export function either(left: () => boolean, right: () => boolean): boolean {
  try {
    if (left()) return true;
  } catch (failure) {
    if (right()) return true;
    throw failure;
  }
  return right();
}

/**
 * CEL's && where the left side may fail: a failure counts only if the right side does not decide.
 * @public called by generated rules
 */
export function both(left: () => boolean, right: () => boolean): boolean {
  try {
    if (!left()) return false;
  } catch (failure) {
    if (!right()) return false;
    throw failure;
  }
  return right();
}

/**
 * CEL's all() where the condition may fail: a failure counts only if no item decides.
 * @public called by generated rules
 */
export function every<T>(items: readonly T[], condition: (item: T) => boolean): boolean {
  let failure: Error | undefined;
  for (const item of items) {
    try {
      if (!condition(item)) return false;
    } catch (error) {
      failure ??= error instanceof Error ? error : new Error(String(error));
    }
  }
  if (failure) throw failure;
  return true;
}

/**
 * CEL's exists() where the condition may fail: a failure counts only if no item decides.
 * @public called by generated rules
 */
export function some<T>(items: readonly T[], condition: (item: T) => boolean): boolean {
  return !every(items, item => !condition(item));
}

/** CEL's size() of a text. */
export function codePoints(text: string): number {
  let count = text.length;
  for (let index = 0; index < text.length - 1; index++) {
    if (isHighSurrogate(text.charCodeAt(index)) && isLowSurrogate(text.charCodeAt(index + 1))) count--;
  }
  return count;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** CEL's duration(), in nanoseconds, which can be compared. */
export function duration(text: string): bigint {
  const ns = durationNs(text);
  if (ns === undefined) throw new TypeError(`${text} is not a duration`);
  return ns;
}

/** The API server's isIP(). */
export function isIP(text: string): boolean {
  return familyOf(text) !== undefined;
}

/** CEL's sets.intersects(). */
export function intersects(left: readonly unknown[], right: readonly unknown[]): boolean {
  const found = new Set(left);
  return right.some(item => found.has(item));
}

/** Whether a value is an object with fields. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
