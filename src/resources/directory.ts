import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Key } from '../api/key.ts';
import type { Resource } from '../api/resource.ts';
import { conflictsOf, damaged, unwritten } from './directory/complaints.ts';
import { Definitions } from './directory/definitions.ts';
import { reasonOf } from './directory/disk.ts';
import { PATIENCE } from './directory/follow.ts';
import type { Patience } from './directory/follow.ts';
import { Journal } from './directory/journal.ts';
import type { Found } from './directory/journal.ts';
import { takeLock } from './directory/lock.ts';
import { ProblemList } from './directory/problems.ts';
import type { Problem } from './directory/problems.ts';
import { createSource } from './directory/source.ts';
import { DirectoryState } from './directory/state.ts';
import type { StatePorts } from './directory/state.ts';
import type { Says } from './directory/text.ts';
import { writesTo } from './directory/write.ts';
import { WrittenObjects } from './directory/written.ts';
import { outside } from './outside.ts';
import type { ReadWritten, WrittenKey } from './written.ts';
import { ResourceError } from './resources.ts';
import type { AnyIndex, ReadResources, WriteResources } from './resources.ts';
import { ResourceStore } from './store.ts';

/** What a directory is opened with. */
export type DirectorySettings = {
  /** Whose YAML and JSON files define objects. It is never written to. */
  readonly folder: string;
  /** Where we keep what an API server would: status, finalizers, uids, and objects that are ours alone. */
  readonly state: string;
  readonly indexes: readonly AnyIndex[];
  /** Where objects are that need a namespace and name none. */
  readonly defaultNamespace?: string;
  /** Told of each problem when it is new. */
  readonly report: (problem: Problem) => void;
  /** Told of what a listener or an index threw. */
  readonly reportFailure: (failure: unknown) => void;
  /** Told which objects of others have changed, after what we read of them has; without it, none are kept. */
  readonly tellWritten?: (keys: readonly WrittenKey[]) => void;
  readonly now?: () => Date;
  readonly patience?: Partial<Patience>;
};

/** A folder of files as a source of resources. */
export type Directory = {
  readonly read: ReadResources;
  readonly write: WriteResources;
  /** The objects of others as they are written, where somebody wants to be told of them. */
  readonly written: ReadWritten;
  /** Begins to read and to follow what changes; until then nothing is known. */
  readonly start: () => void;
  /** What is wrong at this moment. */
  readonly problems: () => readonly Problem[];
  /** Ends all of it, with what was asked to be written. */
  readonly close: () => Promise<void>;
};

/** Opens a folder of declarations; fails where its state is in use by another process or cannot be read. */
export async function openDirectory(settings: DirectorySettings): Promise<Directory> {
  const state = resolve(settings.state);
  await mkdir(state, { recursive: true, mode: 0o700 }).catch(failStart(state));
  const release = await takeLock(state);
  try {
    const journal = new Journal(state);
    const found = await journal.load().catch(failStart(state));
    return connect(settings, journal, found, release);
  } catch (error) {
    await release();
    throw error;
  }
}

function failStart(state: string): (cause: unknown) => never {
  return cause => {
    if (cause instanceof ResourceError) throw cause;
    const message = `the state folder ${state} cannot be used: ${reasonOf(cause)}`;
    throw new ResourceError('Unavailable', message, { cause });
  };
}

function connect(
  settings: DirectorySettings,
  journal: Journal,
  { kept, setAside }: Found,
  release: () => Promise<void>,
): Directory {
  const { indexes, defaultNamespace = 'default', report, tellWritten = () => undefined } = settings;
  const reportFailure = outside(settings.reportFailure);
  const store = new ResourceStore(indexes, reportFailure);
  const problems = new ProblemList(attempted(report, reportFailure));
  const definitions = new Definitions();
  for (const [file, says] of saidBefore(kept)) definitions.replace(file, says, 0);
  const given = { now: settings.now ?? (() => new Date()), newUid: randomUUID };
  const state = createState({ journal, store, given, definitions, problems, reportFailure }, kept);
  const folder = resolve(settings.folder);
  const patience = { ...PATIENCE, ...settings.patience };
  const written = new WrittenObjects();
  const source = createSource({
    ...{ folder, defaultNamespace, patience, definitions, problems, state, store, reportFailure },
    ...(settings.tellWritten ? { written } : {}),
    tellWritten: attempted(tellWritten, reportFailure),
  });
  return {
    read: store,
    write: writesTo(state, given, defaultNamespace),
    written,
    start: () => {
      problems.replace('damage', damaged(setAside));
      state.showAll();
      source.start();
    },
    problems: () => problems.list(),
    close: async () => {
      await source.close();
      await state.close();
      await release();
    },
  };
}

type StateParts = Pick<StatePorts, 'journal' | 'store' | 'given' | 'reportFailure'> & {
  readonly definitions: Definitions;
  readonly problems: ProblemList;
};

/** What is kept follows the definitions, and where they cannot be followed, that is a problem. */
function createState({ definitions, problems, ...ports }: StateParts, kept: Found['kept']): DirectoryState {
  const state: DirectoryState = new DirectoryState(
    {
      ...ports,
      definitionOf: key => definitions.get(key),
      tellSettled: keys => {
        for (const key of keys) {
          const kept = state.get(key);
          if (kept) definitions.adopt(key, kept.object);
          problems.replace(key, conflictsOf(key, kept, definitions));
        }
      },
      tellUnwritten: failure => problems.replace('state', unwritten(failure)),
    },
    kept,
  );
  return state;
}

/** The same, but that what it throws harms nobody. */
function attempted<T>(
  tell: (value: T) => void,
  reportFailure: (failure: unknown) => void,
): (value: T) => void {
  return value => {
    try {
      tell(value);
    } catch (failure) {
      reportFailure(failure);
    }
  };
}

/** What files said when this was last written down, in case that they cannot be read now. */
function saidBefore(kept: Found['kept']): ReadonlyMap<string, Says> {
  const files = new Map<string, Map<Key, Resource>>();
  for (const [key, { object, from }] of kept) {
    if (from.by === 'us' || object.metadata.deletionTimestamp !== undefined) continue;
    const says = files.get(from.file) ?? new Map<Key, Resource>();
    files.set(from.file, says.set(key, object));
  }
  return files;
}
