/** The fields of a lease that its holder writes. */
export type LeaseHold = {
  /** Empty where there is none. */
  readonly holder: string;
  /** For how long after the last observed change others must not acquire it. */
  readonly durationMs: number;
  /** How often the holder has changed since the lease was created. */
  readonly transitions: number;
};

/** A lease as it was read or written; invalid values are empty or 0. */
export type Lease = LeaseHold & {
  /** Differs after each write. It alone shows that time has passed: clocks of processes are never compared. */
  readonly version: string;
};

/** A lease that several processes share. All fail with ResourceError. */
export interface LeasePort {
  /** Undefined where it does not exist. */
  read(signal: AbortSignal): Promise<Lease | undefined>;
  /**
   * Updates the lease if it is unchanged since `over` was read, or creates it where `over` is undefined. Returns undefined
   * where another write was faster. A write that fails may still take effect, even later.
   */
  write(hold: LeaseHold, over: Lease | undefined, signal: AbortSignal): Promise<Lease | undefined>;
}

/** What a holder writes to release a lease: others may acquire it at once. */
export function releaseOf({ transitions }: LeaseHold): LeaseHold {
  return { holder: '', durationMs: RELEASED_MS, transitions };
}

/** Whether a lease was released by its holder; an empty holder alone may be a manual edit. */
export function isReleased({ holder, durationMs }: LeaseHold): boolean {
  return holder === '' && durationMs === RELEASED_MS;
}

/** The shortest duration of a Lease, which no holder uses. */
const RELEASED_MS = 1000;
