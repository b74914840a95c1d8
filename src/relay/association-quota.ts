/**
 * How many associations a port may hold, so that clients of one port, such as a flood from many addresses, cannot starve
 * another port:
 *
 * - All ports together hold at most `max`.
 * - Half of `max` is divided equally between the ports: each port can always hold that share.
 * - The other half is common: the first port that exceeds its share takes from it.
 *
 * While the number of ports grows, shares shrink, and a port may for some time hold more than this; the total limit holds.
 */
export class AssociationQuota {
  readonly #max: number;
  readonly #held = new Map<number, number>();
  #share = 0;
  #common = 0;
  #total = 0;
  #takenFromCommon = 0;

  constructor(max: number) {
    this.#max = max;
    this.setPorts(1);
  }

  /** The number of associations of all ports. */
  get total(): number {
    return this.#total;
  }

  setPorts(count: number): void {
    this.#share = Math.floor(this.#max / 2 / Math.max(1, count));
    this.#common = this.#max - this.#share * count;
    this.#takenFromCommon = 0;
    for (const held of this.#held.values()) this.#takenFromCommon += Math.max(0, held - this.#share);
  }

  /** Counts an association of a port if the port may hold one more. */
  acquire(port: number): boolean {
    const held = this.#held.get(port) ?? 0;
    const isShareUsed = held >= this.#share;
    if (this.#total >= this.#max || (isShareUsed && this.#takenFromCommon >= this.#common)) return false;
    if (isShareUsed) this.#takenFromCommon++;
    this.#held.set(port, held + 1);
    this.#total++;
    return true;
  }

  release(port: number): void {
    const held = this.#held.get(port) ?? 0;
    if (held > this.#share) this.#takenFromCommon--;
    if (held > 1) this.#held.set(port, held - 1);
    else this.#held.delete(port);
    this.#total--;
  }
}
