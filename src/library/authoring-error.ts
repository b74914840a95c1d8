import { formatFault } from '../api/validation/fault.ts';
import type { Fault } from '../api/validation/fault.ts';
import { isRecord } from '../api/json.ts';
import { withArticle } from '../api/text.ts';

/** Thrown where arguments do not make a valid object; `faults` has everything that is wrong. */
export class AuthoringError extends Error {
  /** InvalidObject: the object is invalid. NotDeclared: the MeshEndpoints has no such port or endpoint. */
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

/** The kind, namespace and name of an object, for messages. */
export function titleOf(kind: string, metadata: unknown): string {
  const { name, namespace } = isRecord(metadata) ? metadata : {};
  if (typeof name !== 'string') return `${withArticle(kind)} without a name`;
  return typeof namespace === 'string' ? `${kind} ${namespace}/${name}` : `${kind} ${name}`;
}
