import type { Call } from './call.ts';
import { framed, PREFIX_BYTES, sizeOf } from './framing.ts';
import { MessageReader } from './message-reader.ts';
import type { Bytes, ServerStream, StreamListener, Streaming } from './method.ts';
import { readInto } from './read-into.ts';
import { GrpcError } from './status.ts';

/** Connects a call with what its method makes of it. */
export function serveStream(call: Call, method: Streaming): MessageReader | undefined {
  const sender = new Sender(call);
  const listener = opened(call, method, sender);
  if (!listener) return undefined;
  const reader = new MessageReader({
    most: call.parts.limits.messageBytes,
    budget: call.parts.budget,
    sieve: method.sieve,
    take: message => {
      if (!call.isOver) listener.message(message);
    },
  });
  const finished = (): void => {
    if (reader.isWithin) throw new GrpcError('INTERNAL', 'the stream ends within a message');
    listener.finished();
  };
  const sent = (): void => {
    if (sender.isDrained()) listener.drained();
  };
  readInto(call, reader, { finished, sent, closed: () => listener.closed() });
  return reader;
}

function opened(call: Call, method: Streaming, sender: ServerStream): StreamListener | undefined {
  try {
    return method.open(sender);
  } catch (error) {
    call.fail(error);
    return undefined;
  }
}

class Sender implements ServerStream {
  readonly #call: Call;
  #isFull = false;
  /** What was sent and not released. */
  #held = 0;

  constructor(call: Call) {
    this.#call = call;
  }

  send(message: Bytes): boolean {
    const call = this.#call;
    if (call.isOver) return false;
    const size = sizeOf(message) + PREFIX_BYTES;
    try {
      call.judgeAnswer(size - PREFIX_BYTES);
      call.hold(size);
    } catch (error) {
      call.fail(error);
      return false;
    }
    this.#held += size;
    call.send(framed(message), 'more');
    this.#isFull ||= call.stream.unsent > call.parts.limits.unsentBytes;
    return !this.#isFull;
  }

  end: ServerStream['end'] = status => this.#call.end(status);

  /** Gives back what has been sent; whether there is room again that was not there. */
  isDrained(): boolean {
    const call = this.#call;
    const { unsent } = call.stream;
    call.release(this.#held - unsent);
    this.#held = unsent;
    if (!this.#isFull || unsent > call.parts.limits.unsentBytes / 2) return false;
    this.#isFull = false;
    return !call.isOver;
  }
}
