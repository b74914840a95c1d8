import type { ResourceStore } from '../store.ts';
import { notWatched } from './complaints.ts';
import type { Definitions } from './definitions.ts';
import { FolderFollower } from './follow.ts';
import type { Patience } from './follow.ts';
import type { ProblemList } from './problems.ts';
import { FolderReader } from './reader.ts';
import type { DirectoryState } from './state.ts';
import { FolderWatch } from './watch.ts';
import type { WrittenKey } from '../written.ts';
import type { WrittenObjects } from './written.ts';

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
  readonly written?: WrittenObjects;
  /** Told which objects of others have changed, once the store knows what we read of them. */
  readonly tellWritten: (keys: readonly WrittenKey[]) => void;
};

/** Makes the state follow the files of a folder, from the start until it is closed. */
export function createSource(parts: SourceParts): { start: () => void; close: () => Promise<void> } {
  const { folder, patience, definitions, problems, state, store, reportFailure, written } = parts;
  const watch: FolderWatch = new FolderWatch({
    tell: (where, name) => follower.note(where, name),
    tellTrouble: why => problems.replace('watch', notWatched(why)),
  });
  const reader = new FolderReader({
    ...parts,
    enter: where => watch.add(where),
  });
  const follower = new FolderFollower({
    folder,
    patience,
    reader,
    watch,
    definitions: {
      giveUp: beforeMs => {
        written?.giveUp(beforeMs);
        return definitions.giveUp(beforeMs);
      },
      missingSinceMs: () => earlier(definitions.missingSinceMs(), written?.missingSinceMs()),
    },
    look: keys => {
      state.look(keys);
      const changed = written?.takeChanged() ?? [];
      if (changed.length > 0) void state.whenTaken().then(() => parts.tellWritten(changed));
    },
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

function earlier(a = Infinity, b = Infinity): number | undefined {
  const first = Math.min(a, b);
  return first === Infinity ? undefined : first;
}

async function markSynced(state: DirectoryState, store: ResourceStore): Promise<void> {
  if (store.isSynced()) return;
  await state.whenIdle();
  store.markSynced();
}
