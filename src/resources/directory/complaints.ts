import type { Key } from '../../api/key.ts';
import type { Definitions } from './definitions.ts';
import type { Found } from './journal.ts';
import type { Problem } from './problems.ts';
import { reasonOf } from './disk.ts';
import type { Kept } from '../lifecycle.ts';

/** What is wrong where several files define one object, or one defines what is ours alone. */
export function conflictsOf(key: Key, kept: Kept | undefined, definitions: Definitions): readonly Problem[] {
  const files = definitions.definers(key);
  if (kept?.from.by === 'us') {
    const message = `${key} is made by mesh-gateway itself; what is written here does not count`;
    return files.map(file => ({ reason: 'Duplicate', file, message }));
  }
  const [first = '', ...others] = files;
  const message = `${key} is defined in ${first} already; what is written here does not count`;
  return others.map(file => ({ reason: 'Duplicate', file, message }));
}

/** What is wrong where folders are not watched. */
export function notWatched(why: string | undefined): readonly Problem[] {
  if (why === undefined) return [];
  const message = `changes are seen late, by looking again from time to time: ${why}`;
  return [{ reason: 'NotWatched', file: '.', message }];
}

/** What is wrong where not all that the journal held counts. */
export function damaged(setAside: Found['setAside']): readonly Problem[] {
  if (!setAside) return [];
  const { file, why } = setAside;
  return why.map(message => ({ reason: 'StateDamaged', file, message }));
}

/** What is wrong where the journal cannot be written. */
export function unwritten(failure: unknown): readonly Problem[] {
  if (failure === undefined) return [];
  const message = `the journal of the state folder cannot be written: ${reasonOf(failure)}`;
  return [{ reason: 'StateNotWritten', file: '.', message }];
}
