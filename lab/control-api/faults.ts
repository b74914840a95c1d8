import type { Answer } from './answer.ts';

/** How a call fails. */
export type Fault =
  /** Nothing is carried out, and this is the answer. */
  | ({ readonly is: 'answer' } & Answer)
  /** The call is carried out, and this is the answer nevertheless. */
  | ({ readonly is: 'lost-answer' } & Answer)
  | { readonly is: 'delay'; readonly ms: number }
  /** The connection is reset before anything is carried out, after it, or in the middle of the answer. */
  | { readonly is: 'reset'; readonly when: 'before' | 'after' | 'in-body' }
  /** No answer ever comes. */
  | { readonly is: 'hang' }
  /** The body ends in the middle of the JSON, as if that were all. */
  | { readonly is: 'truncate' }
  /** Lists in the JSON end after the first half of what they have, as if that were all. */
  | { readonly is: 'half-lists' }
  /** The body comes in small pieces. */
  | { readonly is: 'drip'; readonly bytes: number; readonly everyMs: number }
  | { readonly is: 'content-type'; readonly value: string }
  /** Every value in the JSON has another type. */
  | { readonly is: 'wrong-types' }
  | { readonly is: 'redirect'; readonly to: string; readonly status?: number };

/** A fault, and which calls it is for. */
export type FaultRule = {
  /** Names of routes; without it all of them. */
  readonly routes?: readonly string[];
  /** How many calls it is for; without it all until it is removed. */
  readonly times?: number;
  /** The share of calls that it is for, chosen by the seed. */
  readonly share?: number;
  /** A function decides at each call. */
  readonly fault: Fault | ((route: string) => Fault | undefined);
};

const HTML = '<!DOCTYPE html><html><head><title>502</title></head><body><h1>Bad Gateway</h1></body></html>';

/** Answers as proxies and overloaded servers give them. */
export const FAULTS = {
  internalError: { is: 'answer', status: 500, json: { message: 'internal server error' } },
  badGateway: { is: 'answer', status: 502, text: HTML, headers: { 'content-type': 'text/html' } },
  unavailable: { is: 'answer', status: 503, text: 'no healthy upstream' },
  timeout: {
    is: 'answer',
    status: 504,
    json: { message: 'request took too long to process, please try again later' },
  },
  empty: { is: 'answer', status: 200 },
  html: { is: 'answer', status: 200, text: HTML, headers: { 'content-type': 'text/html' } },
  plainText: { is: 'answer', status: 200, text: 'OK' },
} as const satisfies Readonly<Record<string, Fault>>;

/** The faults of calls, in the order in which they were added. */
export class FaultRules {
  readonly #rules: { readonly rule: FaultRule; left: number }[] = [];
  readonly #fraction: () => number;

  constructor(fraction: () => number) {
    this.#fraction = fraction;
  }

  /** Adds a fault; the returned function removes it. */
  add(rule: FaultRule): () => void {
    const entry = { rule, left: rule.times ?? Infinity };
    this.#rules.push(entry);
    return () => {
      entry.left = 0;
    };
  }

  /** The faults of a call: all delays, and the first of all others. */
  take(route: string): readonly Fault[] {
    const taken: Fault[] = [];
    for (const entry of this.#rules) {
      const { routes, share = 1, fault: given } = entry.rule;
      if (entry.left <= 0 || (routes && !routes.includes(route))) continue;
      const fault = typeof given === 'function' ? given(route) : given;
      const isSecond = fault?.is !== 'delay' && taken.some(one => one.is !== 'delay');
      if (!fault || isSecond || (share < 1 && this.#fraction() >= share)) continue;
      entry.left -= 1;
      taken.push(fault);
    }
    return taken;
  }
}

/** The same JSON with other types: texts for numbers, numbers for texts, objects for lists. */
export function withWrongTypes(value: unknown): unknown {
  if (Array.isArray(value)) return { items: value };
  if (typeof value === 'string') return value.length;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'object' || value === null) return [];
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withWrongTypes(one)]));
}

/** The same JSON without the second half of each of its lists. */
export function withHalfLists(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]: [string, unknown]) => [
      name,
      Array.isArray(one) ? one.slice(0, Math.floor(one.length / 2)) : one,
    ]),
  );
}

/** Calls that wait until a test lets them go on, so that they overlap in the order that it wants. */
export type Gate = {
  /** Fulfilled when as many calls as were named wait. */
  readonly arrived: Promise<void>;
  readonly open: () => void;
};

/** The gates at which calls wait before they are carried out. */
export class Gates {
  readonly #waiting: { readonly route: string; readonly pass: () => Promise<void> }[] = [];

  /** Holds the next calls of a route. */
  add(route: string, calls: number): Gate {
    let left = calls;
    const arrived = withResolvers();
    const opened = withResolvers();
    const entry = {
      route,
      pass: () => {
        left -= 1;
        if (left === 0) {
          this.#waiting.splice(this.#waiting.indexOf(entry), 1);
          arrived.resolve();
        }
        return opened.promise;
      },
    };
    this.#waiting.push(entry);
    return { arrived: arrived.promise, open: opened.resolve };
  }

  /** Waits where a gate is for this route. */
  async pass(route: string): Promise<void> {
    await this.#waiting.find(gate => gate.route === route)?.pass();
  }
}

type Resolvers = { readonly promise: Promise<void>; readonly resolve: () => void };

function withResolvers(): Resolvers {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>(fulfil => (resolve = fulfil));
  return { promise, resolve };
}
