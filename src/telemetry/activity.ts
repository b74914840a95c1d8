/** Work that is in progress or waiting. */
export type Activity = {
  /** Such as the key that is reconciled, or the kind that is watched. */
  readonly what: string;
  /** Such as running, waiting, watching. */
  readonly state: string;
  /** For how long, if known. */
  readonly forMs?: number;
};

/** Returns the current activities of a part of the process. */
type ReadActivities = () => readonly Activity[];

/** The activities of a process, by part. */
export interface Activities {
  /** Adds a part; returns the function that removes it. */
  add(name: string, read: ReadActivities): () => void;
  /** The current activities of each part; a part that throws is listed as unknown. */
  list(): ReadonlyMap<string, readonly Activity[]>;
}

/** Contains at first what keeps Node's event loop alive: timers, sockets and other resources. */
export function createActivities(): Activities {
  const parts = new Map<string, ReadActivities>([['event loop', eventLoop]]);
  return {
    add: (name, read) => {
      parts.set(name, read);
      return () => {
        if (parts.get(name) === read) parts.delete(name);
      };
    },
    list: () => new Map([...parts].map(([name, read]) => [name, tried(read)])),
  };
}

function eventLoop(): readonly Activity[] {
  return process.getActiveResourcesInfo().map(type => ({ what: type, state: type }));
}

function tried(read: ReadActivities): readonly Activity[] {
  try {
    return read();
  } catch {
    return [{ what: 'the activities of this part cannot be read', state: 'unknown' }];
  }
}
