import { formatFault } from '../api/validation/fault.ts';
import type { Fault } from '../api/validation/fault.ts';
import { isRecord } from '../api/json.ts';

/** Thrown where an object cannot be made of what was given, with everything that is wrong. */
export class AuthoringError extends Error {
  /** Whether the object itself is wrong, or what was asked of one is not declared in it. */
  readonly reason: 'InvalidObject' | 'NotDeclared';
  readonly faults: readonly Fault[];

  constructor(reason: AuthoringError['reason'], title: string, faults: readonly Fault[]) {
    const lines = faults.map(formatFault);
    super(lines.length === 1 ? `${title}: ${lines.join('')}` : [`${title}:`, ...lines].join('\n  '));
    this.name = 'AuthoringError';
    this.reason = reason;
    this.faults = faults;
  }
}

/** An object as people name it. */
export function titleOf(kind: string, metadata: unknown): string {
  const { name, namespace } = isRecord(metadata) ? metadata : {};
  if (typeof name !== 'string') return `a ${kind} without a name`;
  return typeof namespace === 'string' ? `${kind} ${namespace}/${name}` : `${kind} ${name}`;
}
