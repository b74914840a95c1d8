import { ControlFrames, judgeSize } from './control-frames.ts';
import { ConnectionError } from './errors.ts';
import type { Http2Reason } from './errors.ts';
import { FLAGS, FRAMES, frameOf, MOST } from './frames.ts';
import type { FrameHead } from './frames.ts';
import type { FrameSink } from './frame-reader.ts';
import { HeaderBlocks } from './header-blocks.ts';
import type { HeaderBlock } from './header-blocks.ts';
import type { Outbox } from './outbox.ts';
import { Patience } from './patience.ts';
import { ReceiveWindow } from './receive-window.ts';
import type { RequestHead } from './request-fields.ts';
import type { OwnSettings } from './settings.ts';
import type { Http2Stream, Stream } from './stream.ts';
import type { Streams } from './streams.ts';

/** What the receiving side of a connection works with. */
type IncomingParts = {
  readonly outbox: Outbox;
  readonly streams: Streams;
  readonly settings: OwnSettings;
  /** How much may come over all streams before it is read. */
  readonly window: number;
  readonly now: () => number;
  readonly requested: (stream: Http2Stream, head: RequestHead) => void;
  /** The caller has answered a ping. */
  readonly ponged: (payload: Buffer) => void;
};

/** Frames that bring nothing may come so many at a time and in a second; and a few with each that brings something. */
const NUISANCES = 10_000;
const NUISANCES_PER_SECOND = 1000;
const NUISANCES_PER_GAIN = 10;
/** As many as there are streams at a time: an Envoy that loses all its clusters at once resets as many. */
const RESETS_PER_SECOND = 1000;

const WORD_BYTES = 4;

/** What a caller sends, judged by the rules of RFC 9113; whoever breaks those of a connection gets a ConnectionError. */
export class Incoming implements FrameSink {
  readonly #parts: IncomingParts;
  readonly #blocks: HeaderBlocks;
  readonly #nuisances: Patience;
  readonly #control: ControlFrames;
  readonly #resets: Patience;
  #hasSettings = false;
  #lastTaken = MOST;
  readonly #window: ReceiveWindow;
  #target: Stream | undefined;

  constructor(parts: IncomingParts) {
    this.#parts = parts;
    const { now, settings, window } = parts;
    this.#blocks = new HeaderBlocks(settings.headerBytes);
    this.#nuisances = new Patience(NUISANCES, NUISANCES_PER_SECOND, now);
    this.#control = new ControlFrames(parts);
    this.#resets = new Patience(settings.streams, RESETS_PER_SECOND, now);
    this.#window = new ReceiveWindow(window);
  }

  /** Takes no more streams. */
  refuseNew(): void {
    this.#lastTaken = this.#parts.streams.last;
  }

  /** Something came or was sent that is worth some frames that are not. */
  gain(): void {
    this.#nuisances.give(NUISANCES_PER_GAIN);
  }

  frame(head: FrameHead, payload: Buffer): void {
    this.#judgeOrder(head);
    if (head.type === FRAMES.headers) this.#headers(head, payload);
    else if (head.type === FRAMES.continuation) this.#take(this.#blocks.add(head, payload));
    else if (head.type === FRAMES.reset) this.#reset(head, payload);
    else this.#suffered(head, payload);
  }

  dataBegins(head: FrameHead): void {
    this.#judgeOrder(head);
    const { id, bytes, flags } = head;
    const stream = this.#streamOf(id);
    this.#target = undefined;
    if (!this.#window.take(bytes)) throw new ConnectionError('flowControl', 'more data came than may come');
    if (bytes === 0 && (flags & FLAGS.endStream) === 0) this.#suffer();
    const isAllowed = stream?.window.take(bytes);
    if (!stream) this.#late(id);
    else if (stream.isFinished) this.#break(stream, 'streamClosed');
    else if (!isAllowed) this.#break(stream, 'flowControl');
    else {
      if (bytes > 0) this.gain();
      this.#target = stream;
    }
  }

  data(piece: Buffer): void {
    const stream = this.#target;
    if (!stream || stream.isClosed) return;
    if (stream.announced !== undefined) stream.announced -= piece.length;
    stream.ears.data(piece);
  }

  dataEnds({ flags }: FrameHead): void {
    this.#refill(0, this.#window);
    const stream = this.#target;
    if (!stream || stream.isClosed) return;
    if (flags & FLAGS.endStream) this.#finish(stream);
    else this.#refill(stream.id, stream.window);
  }

  #refill(id: number, window: ReceiveWindow): void {
    const bytes = window.refill();
    if (bytes > 0) this.#parts.outbox.control(frameOf(FRAMES.window, 0, id, bytes));
  }

  /** Settings come first, and nothing comes between the frames of one block of headers. */
  #judgeOrder({ type }: FrameHead): void {
    if (!this.#hasSettings && type !== FRAMES.settings)
      throw new ConnectionError('protocol', 'a connection begins without settings');
    this.#hasSettings = true;
    if (this.#blocks.isWithin !== (type === FRAMES.continuation))
      throw new ConnectionError('protocol', 'headers are not in one piece');
  }

  #headers(head: FrameHead, payload: Buffer): void {
    if (head.id % 2 === 0) throw new ConnectionError('protocol', 'a caller has no such stream');
    this.#take(this.#blocks.begin(head, payload));
  }

  #take(block: HeaderBlock | undefined): void {
    if (!block) return;
    const stream = this.#parts.streams.get(block.id);
    if (stream) this.#trailers(stream, block);
    else if (this.#parts.streams.isIdle(block.id)) this.#request(block);
    else this.#lateHeaders(block.id);
  }

  #request({ id, isLast, fields }: HeaderBlock): void {
    const { streams, settings, requested } = this.#parts;
    const head = fields.head();
    const length = fields.contentLength;
    if (id > this.#lastTaken) this.#suffer();
    else if (streams.size >= settings.streams) this.#refuse(id);
    else if (head === 'too large') streams.refuse(id, 'calm');
    else if (head === 'malformed' || (isLast && length)) streams.refuse(id, 'protocol');
    else {
      this.gain();
      const stream = streams.open(id);
      stream.announced = length;
      requested(stream, head);
      if (isLast && !stream.isClosed) this.#finish(stream);
    }
  }

  /** A caller that knows how many streams it may have gets no more patience. */
  #refuse(id: number): void {
    if (this.#control.hasAck)
      throw new ConnectionError('protocol', 'there are more streams than there may be');
    this.#parts.streams.refuse(id, 'refused');
  }

  #trailers(stream: Stream, { isLast, fields }: HeaderBlock): void {
    if (stream.isFinished) this.#break(stream, 'streamClosed');
    else if (!isLast || !fields.areTrailers) this.#break(stream, 'protocol');
    else this.#finish(stream);
  }

  /** We may have ended a stream of which more was on its way; the caller itself knows what it has ended. */
  #lateHeaders(id: number): void {
    const ender = this.#parts.streams.enderOf(id);
    if (ender === 'server') this.#suffer();
    else if (ender === 'caller')
      throw new ConnectionError('streamClosed', 'headers come for a stream that has ended');
    else throw new ConnectionError('protocol', 'a stream is older than the one before it');
  }

  #late(id: number): void {
    if (id > this.#lastTaken || this.#parts.streams.enderOf(id) !== 'caller') this.#suffer();
    else throw new ConnectionError('streamClosed', 'data comes for a stream that has ended');
  }

  #finish(stream: Stream): void {
    if (stream.announced) this.#break(stream, 'protocol');
    else this.#parts.streams.finish(stream);
  }

  #reset({ id }: FrameHead, payload: Buffer): void {
    judgeSize(payload, WORD_BYTES);
    const stream = this.#streamOf(id);
    if (stream) this.#judgeResets();
    else this.#suffer();
    if (stream) this.#parts.streams.abandon(stream, payload.readUInt32BE(0));
  }

  /** A caller that has us break off its streams is no better than one that does it itself. */
  #break(stream: Stream, reason: Http2Reason): void {
    this.#judgeResets();
    stream.reset(reason);
  }

  #judgeResets(): void {
    if (!this.#resets.take()) throw new ConnectionError('calm', 'too many streams are broken off');
  }

  #suffered(head: FrameHead, payload: Buffer): void {
    this.#suffer();
    if (head.type === FRAMES.window) this.#windowUpdate(head, payload);
    else this.#control.frame(head, payload);
  }

  #windowUpdate({ id }: FrameHead, payload: Buffer): void {
    judgeSize(payload, WORD_BYTES);
    const { outbox } = this.#parts;
    const bytes = payload.readUInt32BE(0) & MOST;
    const stream = id === 0 ? undefined : this.#streamOf(id);
    if (bytes === 0) {
      if (!stream) throw new ConnectionError('protocol', 'a window grows by nothing');
      this.#break(stream, 'protocol');
    } else if (id === 0) outbox.grant(bytes);
    else if (stream && !outbox.grantTo(stream, bytes)) this.#break(stream, 'flowControl');
  }

  /** The stream of a frame that only comes once there is one; undefined where it is closed. */
  #streamOf(id: number): Stream | undefined {
    const { streams } = this.#parts;
    if (id <= this.#lastTaken && streams.isIdle(id))
      throw new ConnectionError('protocol', 'a frame comes before its stream');
    return streams.get(id);
  }

  #suffer(): void {
    if (!this.#nuisances.take()) throw new ConnectionError('calm', 'too many frames bring nothing');
  }
}
