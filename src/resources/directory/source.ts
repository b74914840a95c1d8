import { isEqual } from '../../api/equal.ts';
import type { Resource } from '../../api/resource.ts';
import type { Kept } from '../lifecycle.ts';
import type { ResourceStore } from '../store.ts';
import { notWatched } from './complaints.ts';
import type { Definitions } from './definitions.ts';
import { FolderFollower } from './follow.ts';
import type { Patience } from './follow.ts';
import type { ProblemList } from './problems.ts';
import { FolderReader } from './reader.ts';
import type { DirectoryState } from './state.ts';
import type { Says } from './text.ts';
import { FolderWatch } from './watch.ts';

/** What a source is made of. */
export type SourceParts = {
  readonly folder: string;
  readonly defaultNamespace: string;
  readonly patience: Patience;
  readonly definitions: Definitions;
  readonly problems: ProblemList;
  readonly state: DirectoryState;
  readonly store: ResourceStore;
  readonly reportFailure: (failure: unknown) => void;
};

/** Makes the state follow the files of a folder, from the start until it is closed. */
export function createSource(parts: SourceParts): { start: () => void; close: () => Promise<void> } {
  const { folder, defaultNamespace, patience, definitions, problems, state, store, reportFailure } = parts;
  const watch: FolderWatch = new FolderWatch({
    tell: (where, name) => follower.note(where, name),
    tellTrouble: why => problems.replace('watch', notWatched(why)),
  });
  const reader = new FolderReader({
    folder,
    defaultNamespace,
    definitions,
    problems,
    share: says => withShared(says, state),
    enter: where => watch.add(where),
  });
  const follower = new FolderFollower({
    folder,
    patience,
    reader,
    watch,
    definitions,
    look: keys => state.look(keys),
    tellComplete: () => markSynced(state, store),
    reportFailure,
  });
  return {
    start: () => follower.start(),
    close: async () => {
      await follower.close();
      watch.close();
    },
  };
}

async function markSynced(state: DirectoryState, store: ResourceStore): Promise<void> {
  if (store.isSynced()) return;
  await state.whenIdle();
  store.markSynced();
}

function withShared(says: Says, state: DirectoryState): Says {
  return new Map([...says].map(([key, object]) => [key, withKeptParts(object, state.get(key))]));
}

/** The same object, of which whatever equals a part of what is kept is that part: it needs no memory of its own. */
function withKeptParts(object: Resource, kept: Kept | undefined): Resource {
  if (!kept) return object;
  const known = new Map<string, unknown>(Object.entries(kept.object));
  const fields = Object.entries(object).map(([name, value]: [string, unknown]) => {
    const other = known.get(name);
    return [name, isEqual(value, other) ? other : value] as const;
  });
  return Object.fromEntries(fields) as Resource;
}
