/** Reports what happens now. */
export type OnStep = (step: string) => void;

/** Returns a function that prints steps to standard error, each with the seconds since now. */
export function printSteps(): OnStep {
  const startMs = performance.now();
  return step => console.error(`${((performance.now() - startMs) / 1000).toFixed(1).padStart(6)} s  ${step}`);
}

/** The text of a line that `printSteps` has printed; undefined for other lines. */
export function stepIn(line: string): string | undefined {
  return /^ *\d+\.\d s {2}(.*)$/.exec(line)?.[1];
}
