import { constants } from 'node:http2';
import type { ServerHttp2Stream } from 'node:http2';
import type { GrpcLimits } from './limits.ts';

/**
 * Bounds what the requests of all calls hold together: the library bounds each message, and holds up to four times its size
 * until the call ends. Small requests share a pool. One that grows larger, or for which the pool has no room, is paused until
 * it is its turn, so that there is one of these at a time.
 */
export class RequestMemory {
  readonly #limits: GrpcLimits;
  readonly #waiting = new Set<RequestBytes>();
  #pooled = 0;
  #turn: RequestBytes | undefined;

  constructor(limits: GrpcLimits) {
    this.#limits = limits;
  }

  /** Counts what arrives on a stream from now on. */
  watch(stream: ServerHttp2Stream): RequestBytes {
    const bytes = new RequestBytes(stream, this, this.#limits.requestMs);
    stream.on('data', (chunk: Buffer) => bytes.arrived(chunk.length));
    stream.once('close', () => bytes.release());
    return bytes;
  }

  /** Counts more of a request; false where it must wait for its turn. */
  add(request: RequestBytes, count: number): boolean {
    if (this.#turn === request) return true;
    this.#pooled += count;
    if (request.held <= this.#limits.smallBytes && this.#pooled <= this.#limits.pooledBytes) return true;
    if (!this.#waiting.has(request)) this.#waiting.add(request);
    this.#next();
    return this.#turn === request;
  }

  /** Counts less of a request, which may be all of it. */
  remove(request: RequestBytes, count: number): void {
    if (this.#turn !== request) this.#pooled -= count;
    if (request.held > 0) return;
    this.#waiting.delete(request);
    if (this.#turn === request) this.#turn = undefined;
    this.#next();
  }

  #next(): void {
    const [first] = this.#waiting;
    if (this.#turn || !first) return;
    this.#waiting.delete(first);
    this.#turn = first;
    this.#pooled -= first.held;
    first.resume();
  }
}

/** What one call holds of requests that are not dealt with. */
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

  arrived(count: number): void {
    if (this.#stream.destroyed) return;
    this.#timer ??= setTimeout(() => this.#expire(), this.#requestMs);
    this.#held += count;
    if (!this.#memory.add(this, count)) this.#stream.pause();
  }

  /** A message of a stream was handed over. */
  handedOver(count: number): void {
    this.#remove(Math.min(count, this.#held));
  }

  /** The call is over. */
  release(): void {
    this.#remove(this.#held);
  }

  /** It is its turn. */
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
