import type { ResourceStore } from '../store.ts';
import { notWatched } from './complaints.ts';
import type { Definitions } from './definitions.ts';
import { FolderFollower } from './follow.ts';
import type { Patience } from './follow.ts';
import type { ProblemList } from './problems.ts';
import { FolderReader } from './reader.ts';
import type { DirectoryState } from './state.ts';
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
    enter: where => watch.add(where),
    reportFailure,
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
