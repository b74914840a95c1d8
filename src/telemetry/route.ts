/** What somebody asks for. */
export type Question = {
  readonly query: URLSearchParams;
  /** Fires when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
};

/** What is sent back. */
export type Answer = {
  readonly status: number;
  readonly type: string;
  readonly body: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
};

/** One path, and how it is answered. */
export type Route = {
  readonly path: string;
  readonly answer: (question: Question) => Answer | Promise<Answer>;
};

/** An answer for people. */
export function plainText(status: number, body: string): Answer {
  return { status, type: 'text/plain; charset=utf-8', body };
}
