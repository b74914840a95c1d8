import { constants } from 'node:http2';
import type { ServerHttp2Stream } from 'node:http2';
import type { GrpcLimits } from './limits.ts';

/**
 * Limits the memory of all requests together: the library limits each message, but holds up to four times its size until
 * the call ends. Small requests share a pool. A request that grows larger, or that does not fit into the pool, is paused and
 * queued; one queued request is read at a time.
 */
export class RequestMemory {
  readonly #limits: GrpcLimits;
  readonly #queue = new Set<RequestBytes>();
  #pooled = 0;
  #current: RequestBytes | undefined;

  constructor(limits: GrpcLimits) {
    this.#limits = limits;
  }

  /** Counts the bytes that a stream receives. */
  watch(stream: ServerHttp2Stream): RequestBytes {
    const bytes = new RequestBytes(stream, this, this.#limits.requestMs);
    stream.on('data', (chunk: Buffer) => bytes.received(chunk.length));
    stream.once('close', () => bytes.release());
    return bytes;
  }

  /** Adds bytes of a request; returns false if it was queued. */
  add(request: RequestBytes, count: number): boolean {
    if (this.#current === request) return true;
    this.#pooled += count;
    if (request.held <= this.#limits.smallBytes && this.#pooled <= this.#limits.pooledBytes) return true;
    if (!this.#queue.has(request)) this.#queue.add(request);
    this.#resumeNext();
    return this.#current === request;
  }

  /** Releases bytes of a request. */
  remove(request: RequestBytes, count: number): void {
    if (this.#current !== request) this.#pooled -= count;
    if (request.held > 0) return;
    this.#queue.delete(request);
    if (this.#current === request) this.#current = undefined;
    this.#resumeNext();
  }

  #resumeNext(): void {
    const [first] = this.#queue;
    if (this.#current || !first) return;
    this.#queue.delete(first);
    this.#current = first;
    this.#pooled -= first.held;
    first.resume();
  }
}

/** The bytes of one call's requests that are in memory. */
export class RequestBytes {
  readonly #stream: ServerHttp2Stream;
  readonly #memory: RequestMemory;
  readonly #requestMs: number;
  #held = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(stream: ServerHttp2Stream, memory: RequestMemory, requestMs: number) {
    this.#stream = stream;
    this.#memory = memory;
    this.#requestMs = requestMs;
  }

  get held(): number {
    return this.#held;
  }

  received(count: number): void {
    if (this.#stream.destroyed) return;
    this.#timer ??= setTimeout(() => this.#expire(), this.#requestMs);
    this.#held += count;
    if (!this.#memory.add(this, count)) this.#stream.pause();
  }

  /** The handler has taken a message of a stream. */
  consumed(count: number): void {
    this.#remove(Math.min(count, this.#held));
  }

  /** The call has ended. */
  release(): void {
    this.#remove(this.#held);
  }

  /** It is the next in the queue. */
  resume(): void {
    this.#stream.resume();
  }

  #remove(count: number): void {
    this.#held -= count;
    this.#memory.remove(this, count);
    if (this.#held > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #expire(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
    this.#stream.destroy();
  }
}
