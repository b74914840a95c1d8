import type { Clock } from '../../api/clock.ts';
import { ConnectionError } from './connection.ts';
import type { Answer, Connection, WireRequest } from './connection.ts';
import type { Dialler } from './connection-dial.ts';
import { openSession } from './http2-session.ts';
import type { Session } from './http2-session.ts';
import { orAborted } from './or-aborted.ts';

/** How many connections a server may get that takes few requests on each. */
const MOST_SESSIONS = 4;

/** Sends each request over a session that has room; what finds none waits for one. */
export class Http2Connection implements Connection {
  readonly #server: string;
  readonly #dialler: Dialler;
  readonly #clock: Clock;
  #sessions: readonly Session[] = [];
  #opening: Promise<void> | undefined;
  /** Those who wait for room. */
  #waiting: (() => void)[] = [];
  #isRetired = false;

  constructor(server: string, dialler: Dialler, clock: Clock) {
    this.#server = server;
    this.#dialler = dialler;
    this.#clock = clock;
  }

  async send(request: WireRequest, signal: AbortSignal): Promise<Answer> {
    for (;;) {
      signal.throwIfAborted();
      if (this.#isRetired) throw new ConnectionError('NotProcessed', 'the connection is not used any more');
      const session = this.#sessions.find(each => each.hasRoom());
      if (session) return await session.send(request, signal);
      await orAborted(this.#makeRoom(), signal);
    }
  }

  retire(): void {
    this.#isRetired = true;
    for (const session of this.#sessions) session.retire();
    this.#tellChange();
  }

  async close(): Promise<void> {
    this.#isRetired = true;
    for (const session of this.#sessions) session.destroy();
    this.#tellChange();
    await this.#dialler.close();
  }

  /** Fulfilled when it is worth looking for room again. */
  #makeRoom(): Promise<void> {
    if (this.#opening) return this.#opening;
    if (this.#sessions.length >= MOST_SESSIONS) return new Promise(resolve => this.#waiting.push(resolve));
    this.#opening = this.#open().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async #open(): Promise<void> {
    const { socket, speaks } = await this.#dialler.dial();
    if (speaks !== 'h2') {
      socket.destroy();
      throw new ConnectionError('NotConnected', 'the server does not speak HTTP/2 any more');
    }
    const session = await openSession(this.#server, socket, this.#clock, () => this.#tellChange());
    if (this.#isRetired) session.destroy();
    else this.#sessions = [...this.#sessions, session];
  }

  #tellChange(): void {
    this.#sessions = this.#sessions.filter(session => !session.isOver());
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const look of waiting) look();
  }
}
