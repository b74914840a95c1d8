/** Who holds a lease, as they said when they last wrote it. */
export type LeaseHold = {
  /** Nobody where it is empty. */
  readonly holder: string;
  /** How long others are to leave it alone after they saw it change. */
  readonly durationMs: number;
  /** How often somebody has begun to hold it; it only grows, as long as nobody deletes the lease. */
  readonly transitions: number;
};

/** A lease as it was read or written; what makes no sense in it reads as empty or 0. */
export type Lease = LeaseHold & {
  /** Differs whenever anybody has written it: the only thing of it that tells of time. */
  readonly version: string;
};

/** One lease that several processes share. All fail with ResourceError. */
export interface LeasePort {
  /** Nothing where it is not there. */
  read(signal: AbortSignal): Promise<Lease | undefined>;
  /**
   * Writes it if it is still as it was read (nothing: if it is still not there), and gives it as it is then; gives
   * nothing where somebody else was faster. A write that fails may have been done all the same, even later.
   */
  write(hold: LeaseHold, over: Lease | undefined, signal: AbortSignal): Promise<Lease | undefined>;
}

/** How a holder says that it holds a lease no longer: whoever sees it may take it at once. */
export function releaseOf({ transitions }: LeaseHold): LeaseHold {
  return { holder: '', durationMs: RELEASED_MS, transitions };
}

/** Whether the last holder said that it holds the lease no longer; an empty holder alone may be anybody's edit. */
export function isReleased({ holder, durationMs }: LeaseHold): boolean {
  return holder === '' && durationMs === RELEASED_MS;
}

/** The shortest duration that a lease of Kubernetes can have, which no holder has. */
const RELEASED_MS = 1000;
