import type { Ending } from './portions.ts';

/** An open exchange in both directions. */
export interface Exchange {
  /** Sends bytes, and returns as many as come back. */
  turn(bytes: Buffer): Promise<Buffer>;
  /** Resolves with how it ended. */
  ending(): Promise<Ending>;
  /** Aborts it. */
  reset(): void;
}

/** A response that arrives line by line while the service is still sending. */
export interface Lines {
  /** The next line. */
  next(): Promise<string>;
  /** Aborts it. */
  reset(): void;
}

/** A client of a service behind Envoy. */
export interface Client {
  /** Sends bytes that the service echoes; throws another response. */
  echo(bytes: Buffer): Promise<Buffer>;
  open(): Promise<Exchange>;
  /** Requests more lines than a test reads; undefined for protocols without messages. */
  readonly lines?: () => Promise<Lines>;
  readonly webSocket?: () => Promise<Exchange>;
  /** Closes all connections. */
  close(): void;
}

/** The target of a client: a listener as host:port, and the host of its requests. */
export type Target = { readonly listener: string; readonly host: string };
