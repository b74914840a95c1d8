/** One thing that is wrong with an object: where, what, and what would be right. */
export type Fault = {
  /** As users read it: spec.endpoints[2].port. */
  readonly path: string;
  /** The same, step by step. */
  readonly steps: readonly string[];
  readonly message: string;
};

/** The fault on one line. */
export function formatFault({ path, message }: Fault): string {
  return path === '' ? message : `${path}: ${message}`;
}
