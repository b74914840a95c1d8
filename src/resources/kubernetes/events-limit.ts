/** How many are let through: so many at once, and beyond these one each interval. */
type Rate = { readonly burst: number; readonly intervalMs: number };

/** As client-go limits what is told of one object. */
const EACH: Rate = { burst: 25, intervalMs: 300_000 };
const ALL: Rate = { burst: 100, intervalMs: 1000 };
const MOST_OBJECTS = 1000;

/** Lets a bounded number of new events through: of each object, and of all together. */
export class EventLimit {
  /** When each has nothing to wait for if nothing more comes; whoever came last is last. */
  readonly #each = new Map<string, number>();
  #all = -Infinity;

  /** Whether one more of an object may be told now; if so, it counts. */
  admits(object: string, now: number): boolean {
    const each = taken(this.#each.get(object), now, EACH);
    const all = taken(this.#all, now, ALL);
    if (each === undefined || all === undefined) return false;
    this.#all = all;
    this.#each.delete(object);
    this.#each.set(object, each);
    for (const oldest of this.#each.keys()) {
      if (this.#each.size <= MOST_OBJECTS) break;
      this.#each.delete(oldest);
    }
    return true;
  }
}

/** When the bucket is full again after one more is taken from it; nothing where it is empty. */
function taken(fullAt = -Infinity, now: number, { burst, intervalMs }: Rate): number | undefined {
  const next = Math.max(fullAt, now) + intervalMs;
  return next - now > burst * intervalMs ? undefined : next;
}
