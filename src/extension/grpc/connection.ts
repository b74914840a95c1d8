import type { Socket } from 'node:net';
import type { Activity } from '../../telemetry/activity.ts';
import { accept } from './accept.ts';
import type { Accepted } from './accept.ts';
import { Call } from './call.ts';
import type { CallParts } from './call.ts';
import { Session } from './http2/session.ts';
import type { SessionParts } from './http2/session.ts';
import type { RequestHead } from './http2/request-fields.ts';
import type { Http2Stream } from './http2/stream.ts';
import { Keepalive } from './keepalive.ts';
import type { Methods } from './method.ts';
import type { GrpcStatus } from './status.ts';

/** What a connection works with. */
export type ConnectionParts = CallParts & {
  readonly methods: Methods;
  /** Why no more calls are taken; undefined where there is room. */
  readonly fullness: () => GrpcStatus | undefined;
  readonly begun: () => void;
  readonly ended: (call: Call) => void;
  readonly closed: (connection: Connection) => void;
  readonly failed: SessionParts['failed'];
};

/** What becomes of a connection: at its age it leaves, so that its caller comes back elsewhere; then it ends. */
type Phase =
  | { readonly is: 'open'; readonly until: number }
  | { readonly is: 'leaving'; readonly until: number }
  | { readonly is: 'ending'; readonly until: number; readonly status: GrpcStatus };

/** Streams that were ended have so long to close. */
const CLOSING_MS = 5000;

/** It is nobody's fault: the next connection will do. */
const AGED: GrpcStatus = { code: 'OK', message: '' };

const MIB = 1024 * 1024;

/** How much a caller may send ahead of what has been read, of one stream and of all. */
const WINDOW_OF_STREAM = MIB;
const WINDOW = 8 * MIB;

const HEADER_BYTES = 16_384;

/** A connection and the calls on it, from its first byte to its last. */
export class Connection {
  readonly #session: Session;
  readonly #parts: ConnectionParts;
  readonly #keepalive: Keepalive;
  readonly #calls = new Map<Call, Accepted>();
  readonly #openedAt: number;
  readonly #caller: string;
  #phase: Phase;

  constructor(socket: Socket, ageMs: number, parts: ConnectionParts) {
    const { limits, clock, closed, failed } = parts;
    this.#session = new Session({
      socket,
      settings: {
        streams: limits.streamsOfConnection,
        window: WINDOW_OF_STREAM,
        headerBytes: HEADER_BYTES,
      },
      window: WINDOW,
      now: () => clock.now(),
      requested: (stream, head) => this.#accept(stream, head),
      closed: () => closed(this),
      failed,
    });
    this.#parts = parts;
    this.#keepalive = new Keepalive(limits);
    this.#openedAt = clock.now();
    this.#phase = { is: 'open', until: this.#openedAt + ageMs };
    const { remoteAddress = 'somewhere', remotePort = 0 } = socket;
    this.#caller = `${remoteAddress}:${remotePort}`;
  }

  /** Reads the next piece. */
  read(piece: Buffer): void {
    this.#session.read(piece);
  }

  /** Begins to serve. */
  begin(): void {
    this.#session.begin();
  }

  /** Looks, now and then, what has become of the caller and the calls. */
  look(now: number): void {
    for (const [call, accepted] of this.#calls) {
      call.look(now);
      if (isLate(call, accepted, now, this.#parts.limits.requestMs)) call.end(INCOMPLETE);
    }
    this.#lookAtCaller(now);
    this.#lookAtPhase(now);
  }

  /** Takes no more calls, ends streams with a status, and closes when the calls that are left have ended. */
  end(now: number, graceMs: number, status: GrpcStatus): void {
    this.#session.sayGoodbye();
    this.#phase = { is: 'ending', until: now + graceMs, status };
    for (const [call, { is }] of this.#calls) if (is === 'streaming') call.end(status);
  }

  /** Closes at once. */
  destroy(): void {
    this.#session.destroy();
  }

  /** What it does now, and each of its calls. */
  activities(now: number): readonly Activity[] {
    const calls = [...this.#calls].map(([call, { is }]) => ({
      what: call.path,
      state: is,
      forMs: now - call.startedAt,
    }));
    return [{ what: this.#caller, state: this.#phase.is, forMs: now - this.#openedAt }, ...calls];
  }

  /** Takes a new stream; whatever it is, nothing is thrown. */
  #accept(stream: Http2Stream, headers: RequestHead): void {
    const path = headers[':path'];
    const method = this.#parts.methods.get(path);
    const call = new Call(method ? path : 'unknown', stream, this.#parts, () => this.#forget(call));
    this.#parts.begun();
    try {
      const full = this.#parts.fullness();
      if (full) call.end(full);
      const accepted = accept(call, headers, method);
      this.#calls.set(call, accepted);
      if (this.#phase.is === 'ending' && accepted.is === 'streaming') call.end(this.#phase.status);
    } catch (error) {
      this.#parts.log.error('a call could not be taken', { method: call.path, error });
      stream.reset('internal');
    }
  }

  #forget(call: Call): void {
    this.#calls.get(call)?.reader?.drop();
    this.#calls.delete(call);
    this.#parts.ended(call);
  }

  #lookAtCaller(now: number): void {
    const session = this.#session;
    session.look();
    const verdict = this.#keepalive.look(now, session.bytesRead);
    if (verdict === 'ask') session.ping();
    else if (verdict === 'gone') session.destroy();
  }

  #lookAtPhase(now: number): void {
    if (now < this.#phase.until) return;
    if (this.#phase.is === 'open') {
      this.#session.sayGoodbye();
      this.#phase = { is: 'leaving', until: now + this.#parts.limits.ageGraceMs };
    } else if (this.#phase.is === 'leaving') {
      this.end(now, CLOSING_MS, AGED);
    } else {
      this.#session.destroy();
    }
  }
}

const INCOMPLETE: GrpcStatus = { code: 'DEADLINE_EXCEEDED', message: 'the rest of the request did not come' };

/** Whether a request or a message that has begun has not been completed for so long. */
function isLate(call: Call, { is, reader }: Accepted, now: number, requestMs: number): boolean {
  if (is === 'unary') return !call.stream.isFinished && now - call.startedAt >= requestMs;
  return reader !== undefined && reader.unfinishedFor(now) >= requestMs;
}
