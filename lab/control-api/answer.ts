import type { Dialect } from './state.ts';

/** An HTTP answer with a JSON value, a text or no body. */
export type Answer = {
  readonly status: number;
  readonly json?: unknown;
  /** In place of `json`: the same, encoded. */
  readonly encodedJson?: string;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** A refused call, thrown by operations. Both dialects put the message into the body. */
export class Refusal extends Error {
  readonly status: number;
  /** Further lines, for bodies that list several faults. */
  readonly details: readonly string[];

  constructor(status: number, message: string, details: readonly string[] = []) {
    super(message);
    this.name = 'Refusal';
    this.status = status;
    this.details = details;
  }
}

/** The body of a refusal. */
export function refusalAnswer(dialect: Dialect, { status, message, details }: Refusal): Answer {
  const data = details.length > 0 ? { data: [{ errors: details }] } : {};
  if (dialect === 'vendor') return { status, json: { message, ...data } };
  return {
    status,
    json: { message, ...data, status },
    headers: { 'content-type': 'application/problem+json' },
  };
}

/** A 200 with a JSON body. */
export function ok(json: unknown): Answer {
  return { status: 200, json };
}

/** A 200 of an operation without a result: the vendor sends no body, headscale an empty object. */
export function done(dialect: Dialect): Answer {
  return dialect === 'vendor' ? { status: 200 } : { status: 200, json: {} };
}

/** A path that the server does not know. */
export function unknownPath(dialect: Dialect): Answer {
  return dialect === 'vendor'
    ? { status: 404, json: { message: 'not found' } }
    : { status: 404, text: '404 page not found\n' };
}
