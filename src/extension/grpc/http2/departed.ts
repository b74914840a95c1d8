/** Who ended a stream: the caller, who then sends no more, or we, of which the caller may hear late. */
type Ender = 'caller' | 'server';

const REMEMBERED = 256;

/** The streams that were ended last, so that what still comes for them is judged rightly. */
export class Departed {
  /** Numbers are odd: an even one is the number before it, ended by the server. */
  readonly #ids = new Uint32Array(REMEMBERED);
  #next = 0;

  /** Remembers a stream in place of the one that was ended the longest time ago. */
  add(id: number, by: Ender): void {
    this.#ids[this.#next] = by === 'caller' ? id : id + 1;
    this.#next = (this.#next + 1) % REMEMBERED;
  }

  /** Who ended a stream, where it is remembered. */
  enderOf(id: number): Ender | undefined {
    if (this.#ids.includes(id)) return 'caller';
    return this.#ids.includes(id + 1) ? 'server' : undefined;
  }
}
