import { LABELS } from '../api/names.ts';
import { isRecord } from '../api/rule-functions.ts';
import { WorkloadError } from './workloads.ts';
import type { WorkloadSet } from './workloads.ts';
import type { WorkloadId } from './words.ts';

/** An object as it is there, of which nothing is known beside what it says itself. */
export type Live = Readonly<Record<string, unknown>>;

/** Whose an object is. */
export type Standing =
  /** It belongs to the owner of the set. */
  | 'ours'
  /** We made it for this set, and others have taken its owner away since. */
  | 'orphaned'
  /** It belongs to one that had the name of the owner before, and goes with that one. */
  | 'former'
  /** It is somebody else's. */
  | 'foreign';

/** Whose an object is. By `maker`, our part of an object is told from those of others. */
export function standingOf(live: Live, { owner, inventory }: WorkloadSet, maker: string): Standing {
  const owners = recordsIn(metadataIn(live)['ownerReferences']);
  if (owners.some(({ uid }) => uid === owner.uid)) return 'ours';
  if (owners.some(({ kind, name }) => kind === owner.kind && name === owner.name)) return 'former';
  const isOrphan = owners.length === 0 && labelsIn(live)[LABELS.owner] === inventory;
  return isOrphan && makersOf(live).includes(maker) ? 'orphaned' : 'foreign';
}

/** Fails where an object cannot be made as it should be, because of whose it is or because it is on its way out. */
export function checkStanding(id: WorkloadId, live: Live, set: WorkloadSet, maker: string): void {
  const { namespace, owner } = set;
  const standing = standingOf(live, set, maker);
  if (standing === 'foreign')
    throw new WorkloadError(
      'Refused',
      `${id} is in ${namespace} already, and is not ours: rename or delete that one`,
    );
  if (standing === 'former')
    throw new WorkloadError(
      'Unavailable',
      `${id} belongs to another ${owner.kind} ${owner.name}, of before, and is still there`,
    );
  if (isDying(live)) throw new WorkloadError('Unavailable', `${id} is being deleted, and is still there`);
}

/** Whether an object is on its way out. */
export function isDying(live: Live): boolean {
  return metadataIn(live)['deletionTimestamp'] !== undefined;
}

/** Who has said something of an object. */
export function makersOf(live: Live): readonly unknown[] {
  return recordsIn(metadataIn(live)['managedFields']).map(({ manager, operation }) =>
    operation === 'Apply' ? manager : undefined,
  );
}

/** The metadata of an object. */
export function metadataIn(live: Live): Live {
  const { metadata } = live;
  return isRecord(metadata) ? metadata : {};
}

function labelsIn(live: Live): Live {
  const { labels } = metadataIn(live);
  return isRecord(labels) ? labels : {};
}

function recordsIn(list: unknown): readonly Live[] {
  return Array.isArray(list) ? list.filter(isRecord) : [];
}
