/** The same, but what it throws is thrown where it can break nothing off. */
export function outside(reportFailure: (failure: unknown) => void): (failure: unknown) => void {
  return failure => {
    try {
      reportFailure(failure);
    } catch (thrown) {
      queueMicrotask(() => {
        throw thrown;
      });
    }
  };
}
