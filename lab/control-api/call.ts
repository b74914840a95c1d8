import { Refusal } from './answer.ts';
import type { Answer } from './answer.ts';
import { includesScope } from './scopes.ts';
import type { State, Token } from './state.ts';

/** An authenticated call as an operation sees it. */
export type Call = {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The body as it came. */
  readonly body: string;
  readonly token: Token;
  /** Whether the token has a scope; the request log records that it was required. */
  readonly hasScope: (scope: string) => boolean;
};

/** What a route does. */
export type Operation = (state: State, call: Call) => Answer | Promise<Answer>;

/** Refuses a call whose token lacks a scope. */
export function expectScope(state: State, call: Call, scope: string): void {
  if (call.hasScope(scope)) return;
  if (state.dialect === 'headscale') throw new Refusal(403, `token is missing the required scope ${scope}`);
  if (scope.startsWith('services') && state.behaviour.withoutServicesScope === 404)
    throw new Refusal(404, 'not found');
  throw new Refusal(403, 'calling actor does not have enough permissions to perform this function');
}

/** Whether a token has a scope on a server. */
export function tokenHasScope(state: State, token: Token, scope: string): boolean {
  return includesScope(token.scopes, scope, state.behaviour.scopeNames);
}

/** The JSON object in the body. */
export function bodyOf(call: Call): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(call.body);
    if (isObject(value)) return value;
  } catch {
    // Refused below.
  }
  throw new Refusal(400, 'request body must be a JSON object');
}

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

type FieldTypes = { readonly boolean: boolean; readonly number: number; readonly string: string };

/** An optional field of a body, which must have a type. */
export function field<Type extends keyof FieldTypes>(
  body: Readonly<Record<string, unknown>>,
  name: string,
  type: Type,
): FieldTypes[Type] | undefined {
  const value = body[name] ?? undefined;
  if (value === undefined || typeof value === type) return value as FieldTypes[Type] | undefined;
  throw new Refusal(400, `${name} must be a ${type}`);
}

/** An optional list of strings in a body. */
export function texts(body: Readonly<Record<string, unknown>>, name: string): readonly string[] {
  const value = body[name] ?? [];
  if (Array.isArray(value) && value.every(one => typeof one === 'string')) return value;
  throw new Refusal(400, `${name} must be a list of strings`);
}
