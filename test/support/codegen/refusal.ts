import { load } from '../../../codegen/load/load.ts';
import { Refusal } from '../../../codegen/refusal.ts';
import { tinyFiles } from './tiny-schema.ts';
import type { Patch } from './tiny-schema.ts';

/** A change of the tiny schema that must be refused: title, patch, place and reason. */
export type Refused = readonly [sentence: string, patch: Patch, place: string, why: string];

/** The refusal of a patch, as `place: why`. */
export function refusalOf(patch: Patch): string {
  return refusalIn(() => load(tinyFiles(patch)));
}

/** The refusal that a function throws, as `place: why`. */
export function refusalIn(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { file, pointer } = error.place;
    const isToldBoth = error.message.startsWith(`schema/${file}#${pointer}: `);
    return isToldBoth ? error.message.slice('schema/'.length) : `${error.message} (at ${file}#${pointer})`;
  }
  return 'nothing is refused';
}
