/** The lanes in which keys wait for their turn. */
export type LaneName = 'live' | 'background';

/** What a queue knows of a key. The key is in one place, and forgotten when it has none. */
export type Entry<K> = {
  readonly key: K;
  /** A released run goes on without a place of its own. */
  at: LaneName | 'running' | 'released' | 'later' | 'backoff';
  /** The lane that it was in last, to which a retry returns. */
  lane: LaneName;
  /** Where it goes after its run, because something changed meanwhile. */
  next: LaneName | undefined;
  /** Runs without success in a row. */
  failures: number;
  /** Since when it waits for its turn. */
  waitsSince: number;
  /** Its neighbours in a lane. */
  before: Entry<K> | undefined;
  behind: Entry<K> | undefined;
  /** Its place among those that wait for a time. */
  dueAt: number;
  order: number;
  place: number;
};

/** A key of which nothing is known yet. */
export function newEntry<K>(key: K): Entry<K> {
  return {
    key,
    at: 'live',
    lane: 'live',
    next: undefined,
    failures: 0,
    waitsSince: 0,
    before: undefined,
    behind: undefined,
    dueAt: 0,
    order: 0,
    place: 0,
  };
}
