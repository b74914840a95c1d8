/** The message of an error; for one of Node's fetch with that of its cause, which has the reason. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  return error instanceof TypeError && cause instanceof Error ? `${message}: ${cause.message}` : message;
}

/** The code of a system error, such as ENOENT; empty for other errors. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Runs tasks one after another, also after one that fails; fails at the end with all messages. */
export async function tryAll(works: readonly (() => Promise<unknown>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const work of works) {
    try {
      await work();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, failures.map(messageOf).join('; '));
}
