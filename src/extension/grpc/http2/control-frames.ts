import { ConnectionError } from './errors.ts';
import { FLAGS, FRAMES, frameOf, HEAD_BYTES, writeHead } from './frames.ts';
import type { FrameHead } from './frames.ts';
import { dependencyIn } from './header-blocks.ts';
import type { Outbox } from './outbox.ts';
import { Patience } from './patience.ts';
import { windowIn } from './settings.ts';
import type { Streams } from './streams.ts';

/** What they are about. */
type ControlParts = {
  readonly outbox: Outbox;
  readonly streams: Streams;
  readonly now: () => number;
  /** The caller has answered a ping. */
  readonly ponged: (payload: Buffer) => void;
};

/** Each may make work for all streams, so that there are few at a time and in a second. */
const SETTINGS = 100;
const SETTINGS_PER_SECOND = 10;

const ACK_OF_SETTINGS = frameOf(FRAMES.settings, FLAGS.ack, 0);
const PING_BYTES = 8;
const GOAWAY_BYTES = 8;
const PRIORITY_BYTES = 5;

/** The frames that bring nothing to a stream: those of the connection, and those that mean nothing here. */
export class ControlFrames {
  readonly #parts: ControlParts;
  readonly #patience: Patience;
  /** Whether the caller knows our settings. */
  hasAck = false;

  constructor(parts: ControlParts) {
    this.#parts = parts;
    this.#patience = new Patience(SETTINGS, SETTINGS_PER_SECOND, parts.now);
  }

  /** Does what a frame asks for; fails with a ConnectionError where it is against the rules. */
  frame(head: FrameHead, payload: Buffer): void {
    if (head.type === FRAMES.settings) this.#settings(head, payload);
    else if (head.type === FRAMES.ping) this.#ping(head, payload);
    else if (head.type === FRAMES.goaway) judgeGoaway(head, payload);
    else if (head.type === FRAMES.priority) judgePriority(head, payload);
    else if (head.type === FRAMES.push) throw new ConnectionError('protocol', 'a caller pushes');
  }

  #settings({ id, flags }: FrameHead, payload: Buffer): void {
    judgeOwn(id);
    if (flags & FLAGS.ack) {
      judgeSize(payload, 0);
      this.hasAck = true;
      return;
    }
    if (!this.#patience.take()) throw new ConnectionError('calm', 'settings do not settle');
    const { outbox, streams } = this.#parts;
    const window = windowIn(payload);
    if (window !== undefined) outbox.changeWindow(window, streams.all());
    outbox.control(ACK_OF_SETTINGS);
  }

  #ping({ id, flags }: FrameHead, payload: Buffer): void {
    judgeOwn(id);
    judgeSize(payload, PING_BYTES);
    if (flags & FLAGS.ack) {
      this.#parts.ponged(payload);
      return;
    }
    const ack = Buffer.allocUnsafe(HEAD_BYTES + PING_BYTES);
    writeHead(ack, 0, { bytes: PING_BYTES, type: FRAMES.ping, flags: FLAGS.ack, id: 0 });
    payload.copy(ack, HEAD_BYTES);
    this.#parts.outbox.control(ack);
  }
}

/** Fails where a frame has another size than all of its kind. */
export function judgeSize({ length }: Buffer, bytes: number): void {
  if (length !== bytes) throw new ConnectionError('frameSize', 'a frame has another size');
}

function judgeOwn(id: number): void {
  if (id !== 0) throw new ConnectionError('protocol', 'a frame of a connection names a stream');
}

function judgeGoaway({ id }: FrameHead, payload: Buffer): void {
  judgeOwn(id);
  if (payload.length < GOAWAY_BYTES) throw new ConnectionError('frameSize', 'a frame is too short');
}

function judgePriority({ id }: FrameHead, payload: Buffer): void {
  if (id === 0) throw new ConnectionError('protocol', 'a connection has no priority');
  judgeSize(payload, PRIORITY_BYTES);
  if (dependencyIn(payload, 0) === id) throw new ConnectionError('protocol', 'a stream depends on itself');
}
