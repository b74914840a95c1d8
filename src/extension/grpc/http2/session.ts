import type { Socket } from 'node:net';
import { ConnectionError, ERROR_CODES } from './errors.ts';
import { FrameReader } from './frame-reader.ts';
import { FRAMES, frameOf, MOST } from './frames.ts';
import { Incoming } from './incoming.ts';
import { Outbox } from './outbox.ts';
import type { RequestHead } from './request-fields.ts';
import { settingsFrame, USUAL_WINDOW } from './settings.ts';
import type { OwnSettings } from './settings.ts';
import type { Http2Stream } from './stream.ts';
import { Streams } from './streams.ts';

/** What a connection of HTTP/2 works with. */
export type SessionParts = {
  readonly socket: Socket;
  readonly settings: OwnSettings;
  /** How much may come over all streams before it is read. */
  readonly window: number;
  readonly now: () => number;
  readonly requested: (stream: Http2Stream, head: RequestHead) => void;
  /** Nothing comes or goes any more, and all streams have closed. */
  readonly closed: () => void;
  /** It could not go on, for what the caller or the network did, or for a mistake of ours. */
  readonly failed: (error: unknown, by: 'caller' | 'server') => void;
};

/** Open; or asked to leave; or left with the streams that it has; or ended, well or not, and waiting for the other end. */
type State = 'open' | 'warned' | 'leaving' | 'left' | 'failed';

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** Two words each, that come back with the answer. */
const KEEPALIVE = frameOf(FRAMES.ping, 0, 0, 0, 0);
const WARNING_PING = frameOf(FRAMES.ping, 0, 0, 0, 1);

/** A caller that takes so little of what it is answered is not read. */
const MOST_BACKLOG = 1_048_576;

/** A connection of HTTP/2 whose caller knows beforehand that it is one. */
export class Session {
  readonly #parts: SessionParts;
  readonly #outbox: Outbox;
  readonly #streams: Streams;
  readonly #incoming: Incoming;
  readonly #reader: FrameReader;
  #state: State = 'open';
  #prefaceRead = 0;
  /** Whether all that is sent now will be handed over at the end of what is being done. */
  #isBusy = false;
  #isFlushDue = false;
  #looksAfterFailure = 0;

  constructor(parts: SessionParts) {
    const { socket, settings, window, now, requested } = parts;
    this.#parts = parts;
    const outbox = new Outbox({
      socket,
      touched: () => this.#flushSoon(),
      answered: stream => this.#streams.answered(stream),
      progressed: () => this.#incoming.gain(),
    });
    this.#outbox = outbox;
    this.#streams = new Streams(outbox, settings.window);
    const ponged = (payload: Buffer): void => {
      if (payload.readUInt32BE(4) === 1) this.#leave();
    };
    const streams = this.#streams;
    this.#incoming = new Incoming({ outbox, streams, settings, window, now, requested, ponged });
    this.#reader = new FrameReader(this.#incoming);
  }

  /** Begins to read, and to write what comes first. */
  begin(): void {
    const { socket, settings, window, failed } = this.#parts;
    socket.resume();
    socket.on('drain', () => {
      socket.resume();
      this.#guarded(() => this.#flush());
    });
    socket.on('end', () => socket.destroySoon());
    socket.on('error', error => failed(error, 'caller'));
    socket.once('close', () => this.#guarded(() => this.#closed()));
    this.#outbox.control(settingsFrame(settings));
    this.#outbox.control(frameOf(FRAMES.window, 0, 0, window - USUAL_WINDOW));
  }

  /** Reads the next piece. */
  read(piece: Buffer): void {
    this.#guarded(() => this.#read(piece));
  }

  /** How much has come. */
  get bytesRead(): number {
    return this.#parts.socket.bytesRead;
  }

  /** Asks whether the caller is there. */
  ping(): void {
    this.#outbox.control(KEEPALIVE);
  }

  /**
   * Asks the caller to make its next calls elsewhere. What it has sent meanwhile is taken until it has heard, or until
   * the next look; then nothing new is, and the connection ends with its last stream.
   */
  sayGoodbye(): void {
    if (this.#state !== 'open') return;
    this.#state = 'warned';
    this.#outbox.control(frameOf(FRAMES.goaway, 0, 0, MOST, ERROR_CODES.none));
    this.#outbox.control(WARNING_PING);
  }

  /** To be called about once a second. */
  look(): void {
    if (this.#state === 'warned') this.#leave();
    if (this.#state === 'failed' && ++this.#looksAfterFailure > 1) this.destroy();
  }

  /** Closes at once. */
  destroy(): void {
    this.#parts.socket.destroy();
  }

  #read(piece: Buffer): void {
    if (this.#state === 'failed' || this.#state === 'left') return;
    this.#isBusy = true;
    const rest = this.#prefaceRead < PREFACE.length ? this.#readPreface(piece) : piece;
    if (rest.length > 0) this.#reader.read(rest);
    this.#flush();
  }

  #readPreface(piece: Buffer): Buffer {
    const bytes = Math.min(piece.length, PREFACE.length - this.#prefaceRead);
    const expected = PREFACE.subarray(this.#prefaceRead, this.#prefaceRead + bytes);
    if (!piece.subarray(0, bytes).equals(expected))
      throw new ConnectionError('protocol', 'a connection does not begin as one of HTTP/2');
    this.#prefaceRead += bytes;
    return piece.subarray(bytes);
  }

  /** All that is to be sent in one turn is sent in one piece. */
  #flushSoon(): void {
    if (this.#isBusy || this.#isFlushDue) return;
    this.#isFlushDue = true;
    queueMicrotask(() => this.#guarded(() => this.#flush()));
  }

  #flush(): void {
    this.#isFlushDue = false;
    this.#isBusy = false;
    const { socket } = this.#parts;
    if (socket.writable) {
      this.#isBusy = true;
      const sent = this.#outbox.flush();
      this.#isBusy = false;
      for (const stream of sent) if (!stream.isClosed) stream.ears.sent?.();
      if (this.#outbox.backlog > MOST_BACKLOG) socket.pause();
    }
    this.#streams.tell();
    if (this.#state !== 'leaving' || this.#streams.size > 0) return;
    this.#state = 'left';
    socket.end();
  }

  #leave(): void {
    if (this.#state !== 'warned') return;
    this.#state = 'leaving';
    this.#incoming.refuseNew();
    this.#outbox.control(frameOf(FRAMES.goaway, 0, 0, this.#streams.last, ERROR_CODES.none));
  }

  #closed(): void {
    this.#state = 'failed';
    this.#streams.breakAll();
    try {
      this.#streams.tell();
    } finally {
      this.#parts.closed();
    }
  }

  /** Whatever goes wrong ends this connection, and nothing else. */
  #guarded(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Says why, and reads on without a look at it for a while, so that the caller gets to read that. */
  #fail(error: unknown): void {
    this.#isBusy = false;
    const reason = error instanceof ConnectionError ? error.reason : 'internal';
    this.#parts.failed(error, error instanceof ConnectionError ? 'caller' : 'server');
    if (this.#state === 'failed') {
      this.destroy();
      return;
    }
    this.#state = 'failed';
    this.#streams.breakAll();
    this.#outbox.control(frameOf(FRAMES.goaway, 0, 0, this.#streams.last, ERROR_CODES[reason]));
    this.#guarded(() => this.#flush());
    this.#parts.socket.end();
  }
}
