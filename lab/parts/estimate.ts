/** A program of a build: the processor seconds that it is estimated to take, and the time that it takes or took now. */
export type Timed = { readonly cpuSeconds: number; readonly ms: number };

/** A build: what is built, what is being built, and the estimated processor seconds of what waits. */
export type Work = {
  readonly built: readonly Timed[];
  readonly running: readonly Timed[];
  readonly waitingCpuSeconds: number;
};

/** So much at the estimated speed is assumed to have been built before, so that a single program proves little. */
const ASSUMED_SECONDS = 20;

/**
 * The time until a build ends, if the rest takes as long for each estimated second as what is built: shorter on more
 * processors or where Go has compiled it before, longer on a busy machine. What already takes longer than estimated
 * counts as built now.
 */
export function remainingMs({ built, running, waitingCpuSeconds }: Work, atOnce: number): number {
  const known = [...built, ...running.filter(({ cpuSeconds, ms }) => ms > cpuSeconds * 1000)];
  const speed =
    (sum(known.map(({ cpuSeconds }) => cpuSeconds)) + ASSUMED_SECONDS) /
    (sum(known.map(({ ms }) => ms)) / 1000 + ASSUMED_SECONDS);
  const rest = running.map(({ cpuSeconds, ms }) => Math.max(cpuSeconds - (ms / 1000) * speed, 0));
  return ((sum(rest) + waitingCpuSeconds) / speed / atOnce) * 1000;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** An estimate for people, no more exact than it is: about 6 min. */
export function roughly(ms: number): string {
  return ms < 60_000 ? 'less than a minute' : `about ${Math.round(ms / 60_000)} min`;
}
