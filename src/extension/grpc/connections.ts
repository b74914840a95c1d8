import type { Socket } from 'node:net';
import type { Activity } from '../../telemetry/activity.ts';
import { Budget } from './budget.ts';
import type { Clock } from '../../api/clock.ts';
import { Connection } from './connection.ts';
import type { ConnectionParts } from './connection.ts';
import { readOver } from './http2/read-over.ts';
import type { GrpcLimits } from './limits.ts';
import type { Methods } from './method.ts';
import type { GrpcStatus } from './status.ts';
import { recordCall } from './telemetry.ts';
import type { GrpcTelemetry } from './telemetry.ts';

/** What the connections of a server share. */
type SharedParts = {
  readonly methods: Methods;
  readonly limits: GrpcLimits;
  readonly telemetry: GrpcTelemetry;
  readonly clock: Clock;
  readonly random: () => number;
};

const FULL: GrpcStatus = { code: 'RESOURCE_EXHAUSTED', message: 'the server has too many calls' };
const STOPPING: GrpcStatus = { code: 'UNAVAILABLE', message: 'the server stops' };

/** How far the ages of connections lie from each other. */
const AGE_JITTER = 0.1;

/** As much as the kernel is asked for at a time, by all connections in turn. */
const READ_BYTES = 65_536;

/** All connections of a server. */
export class Connections {
  readonly #parts: SharedParts;
  readonly #open = new Set<Connection>();
  readonly #budget: Budget;
  readonly #memory = Buffer.allocUnsafeSlow(READ_BYTES);
  #calls = 0;
  #whenEmpty: (() => void) | undefined;

  constructor(parts: SharedParts) {
    this.#parts = parts;
    this.#budget = new Budget(parts.limits.heldBytes);
  }

  /** Serves a new connection until it closes. */
  add(accepted: Socket): void {
    const socket = readOver(accepted, this.#memory, piece => connection.read(piece));
    const { limits, random } = this.#parts;
    const ageMs = limits.ageMs * (1 + AGE_JITTER * (2 * random() - 1));
    const connection = new Connection(socket, ageMs, this.#partsOfConnection());
    this.#open.add(connection);
    connection.begin();
    if (this.#whenEmpty) connection.destroy();
  }

  /** Looks after all of them; to be called about once a second. */
  look(): void {
    const now = this.#parts.clock.now();
    for (const connection of this.#open) connection.look(now);
  }

  /** Ends all: resolves when none is left, which is after the grace at the latest. */
  async end(graceMs: number): Promise<void> {
    const { clock } = this.#parts;
    const now = clock.now();
    const ended = new Promise<void>(done => {
      this.#whenEmpty = done;
    });
    for (const connection of this.#open) connection.end(now, graceMs, STOPPING);
    const cancel = clock.after(graceMs, () => {
      for (const connection of this.#open) connection.destroy();
    });
    if (this.#open.size === 0) this.#whenEmpty?.();
    await ended;
    cancel();
  }

  /** What all of them do. */
  activities(): readonly Activity[] {
    const now = this.#parts.clock.now();
    return [...this.#open].flatMap(connection => connection.activities(now));
  }

  #forget(connection: Connection): void {
    this.#open.delete(connection);
    if (this.#open.size === 0) this.#whenEmpty?.();
  }

  #partsOfConnection(): ConnectionParts {
    const { methods, limits, telemetry, clock } = this.#parts;
    return {
      methods,
      limits,
      clock,
      log: telemetry.log,
      budget: new Budget(limits.heldBytesOfConnection, this.#budget),
      fullness: () => (this.#calls > limits.streams ? FULL : undefined),
      begun: () => {
        this.#calls++;
      },
      ended: call => {
        this.#calls--;
        recordCall(telemetry.record, call, clock.now());
      },
      closed: connection => this.#forget(connection),
      failed: (error, by) => {
        if (by === 'caller') telemetry.log.debug('a gRPC connection failed', { error });
        else telemetry.log.error('a gRPC connection failed', { error });
      },
    };
  }
}
