/** Something that runs or waits. */
export type Activity = {
  /** What it is: the key that is reconciled, the kind that is watched. */
  readonly what: string;
  /** How it is, in a word or two that many share: running, waiting, watching. */
  readonly state: string;
  /** For how long, where that is known. */
  readonly forMs?: number;
};

/** Tells what a part of the process does at this moment. */
type ReadActivities = () => readonly Activity[];

/** What the parts of a process do, as far as they say. */
export interface Activities {
  /** Asks a part from now on; gives the function that ends it. */
  add(name: string, read: ReadActivities): () => void;
  /** What each part does now; a part that cannot say is left out, with the reason. */
  list(): ReadonlyMap<string, readonly Activity[]>;
}

/** Begins with what Node knows of itself: the timers, sockets and other resources that keep its event loop going. */
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
    return [{ what: 'this part could not say what it does', state: 'unknown' }];
  }
}
