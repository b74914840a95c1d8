import type { Ending } from './portions.ts';

/** Something that goes on for a while in both directions. */
export interface Exchange {
  /** Sends bytes, and gives as many as come back. */
  turn(bytes: Buffer): Promise<Buffer>;
  /** How it ends, once it does. */
  ending(): Promise<Ending>;
  /** Breaks it off without a word. */
  reset(): void;
}

/** What comes one after another, while the one who sends it still does. */
export interface Lines {
  /** The next one. */
  next(): Promise<string>;
  /** Breaks it off. */
  reset(): void;
}

/** Someone who uses a service through Envoy. */
export interface Client {
  /** Has the service send back what it is sent; fails with the response if that is another. */
  echo(bytes: Buffer): Promise<Buffer>;
  open(): Promise<Exchange>;
  /** Asks for more lines than anyone waits for; protocols without messages have none. */
  readonly lines?: () => Promise<Lines>;
  readonly webSocket?: () => Promise<Exchange>;
  /** Ends every connection. */
  close(): void;
}

/** Where a client goes to: a listener as host:port, and the host that it asks for there. */
export type Target = { readonly listener: string; readonly host: string };
