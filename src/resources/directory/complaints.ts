import type { Key } from '../../api/key.ts';
import type { Definitions } from './definitions.ts';
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

/** What is wrong where the journal was not as we had written it. */
export function damaged(setAside: string | undefined): readonly Problem[] {
  if (setAside === undefined) return [];
  const message = 'the journal of the state folder held what we did not write; what was whole still counts';
  return [{ reason: 'StateDamaged', file: setAside, message }];
}

/** What is wrong where the journal cannot be written. */
export function unwritten(failure: unknown): readonly Problem[] {
  if (failure === undefined) return [];
  const message = `the journal of the state folder cannot be written: ${reasonOf(failure)}`;
  return [{ reason: 'StateNotWritten', file: '.', message }];
}
