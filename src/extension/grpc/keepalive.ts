/** What is to be done about a connection that is silent. */
type Verdict = 'nothing' | 'ask' | 'gone';

/** Tells from how much has come over a connection, looked at now and then, whether anybody is there. */
export class Keepalive {
  readonly #limits: { readonly keepaliveMs: number; readonly keepaliveAnswerMs: number };
  #bytes = -1;
  #heardAt = 0;
  #askedAt: number | undefined;

  constructor(limits: { readonly keepaliveMs: number; readonly keepaliveAnswerMs: number }) {
    this.#limits = limits;
  }

  /** Whoever sends anything is there: the answer to a ping is no more than that. */
  look(now: number, bytesRead: number): Verdict {
    if (bytesRead !== this.#bytes) {
      this.#bytes = bytesRead;
      this.#heardAt = now;
      this.#askedAt = undefined;
    }
    const { keepaliveMs, keepaliveAnswerMs } = this.#limits;
    if (this.#askedAt !== undefined) return now - this.#askedAt >= keepaliveAnswerMs ? 'gone' : 'nothing';
    if (now - this.#heardAt < keepaliveMs) return 'nothing';
    this.#askedAt = now;
    return 'ask';
  }
}
