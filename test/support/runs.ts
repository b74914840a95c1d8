import { IS_LONG } from './eventually.ts';

type Runs = { readonly seed?: number; readonly numRuns: number };

/**
 * How often a property is tried that takes long: a third in the short form. Each run has values of its own; where one fails,
 * fast-check reports its seed, which `SEED=2 npm test` tries again.
 */
export function runs(numRuns: number): Runs {
  const seed = process.env['SEED'];
  return {
    ...(seed === undefined ? {} : { seed: Number(seed) }),
    numRuns: IS_LONG ? numRuns : Math.ceil(numRuns / 3),
  };
}
