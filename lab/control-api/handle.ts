import type { JSONWebKeySet } from 'jose';
import { Refusal, refusalAnswer, unknownPath } from './answer.ts';
import type { Answer } from './answer.ts';
import { expectScope, tokenHasScope } from './call.ts';
import type { Call } from './call.ts';
import { Throttled } from './rate-limit.ts';
import type { RateLimiter } from './rate-limit.ts';
import { removeEphemeral } from './operations/registration.ts';
import { matchRoute, TOKEN_ROUTES } from './routes.ts';
import type { Route, RouteMatch } from './routes.ts';
import type { State, Token } from './state.ts';
import { authenticate, exchangeToken, issueToken } from './operations/tokens.ts';

/** A request as it came. */
export type ApiRequest = {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
};

/** What requests are handled with. */
export type Deps = {
  readonly state: State;
  readonly routes: readonly Route[];
  readonly limiter: RateLimiter;
  readonly issuers: ReadonlyMap<string, JSONWebKeySet>;
  /** Updates the state from the real tailnet behind the simulator. */
  readonly refresh: () => Promise<void>;
  /** Routes that the tailnet behind it does not support. */
  readonly unsupported: readonly string[];
};

/** What the request log records about how a request was handled. */
export type Noted = { credential: string; readonly scopes: Set<string> };

/** The name of the route that a request is for. */
export function routeNameOf({ state, routes }: Deps, { method, url }: ApiRequest): string {
  const tokenRoute = tokenRouteOf(url);
  if (tokenRoute !== undefined) return tokenRoute;
  if (url.pathname === '/api/v2/tailnet') return 'probe';
  const match = matchRoute(routes, state.dialect, method, url.pathname);
  return match.is === 'route' ? match.route.name : 'unknown';
}

/** Answers a request, and fills `noted` for the request log. */
export async function handle(deps: Deps, request: ApiRequest, noted: Noted): Promise<Answer> {
  const { state } = deps;
  try {
    removeEphemeral(state);
    return await answerTo(deps, request, noted);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const answer = refusalAnswer(state.dialect, error);
    if (!(error instanceof Throttled)) return answer;
    return { ...answer, headers: { ...answer.headers, ...error.headers } };
  }
}

async function answerTo(deps: Deps, request: ApiRequest, noted: Noted): Promise<Answer> {
  const { state, routes, limiter } = deps;
  const { dialect } = state;
  const { url, method } = request;
  const tokenRoute = tokenRouteOf(url);
  if (tokenRoute !== undefined && (tokenRoute === 'token' || dialect === 'vendor'))
    return tokenAnswer(deps, request, tokenRoute);
  const match = matchRoute(routes, dialect, method, url.pathname);
  if (match.is === 'unknown' && dialect === 'headscale') return unknownPath(dialect);
  const token = authenticate(state, headerOf(request, 'authorization'));
  noted.credential = token.credential;
  if (match.is === 'unknown') return unknownPath(dialect);
  if (match.is === 'wrong-method') throw new Refusal(405, 'method not allowed');
  limiter.take(token.credential, match.route.name);
  expectTailnet(state, match);
  const call = callOf(state, request, match, token, noted);
  for (const scope of match.route.scopes) expectScope(state, call, scope);
  if (deps.unsupported.includes(match.route.name))
    throw new Refusal(501, 'not supported by the tailnet behind this simulator');
  await deps.refresh();
  return match.route.run(state, call);
}

function tokenRouteOf({ pathname }: URL): (typeof TOKEN_ROUTES)[number] | undefined {
  return TOKEN_ROUTES.find(name => pathname === `/api/v2/oauth/${name}`);
}

async function tokenAnswer(
  { state, limiter, issuers }: Deps,
  request: ApiRequest,
  route: (typeof TOKEN_ROUTES)[number],
): Promise<Answer> {
  if (request.method !== 'POST') throw new Refusal(405, 'method not allowed');
  limiter.take('', route);
  const tokenRequest = {
    contentType: headerOf(request, 'content-type'),
    authorization: headerOf(request, 'authorization'),
    body: request.body,
  };
  if (route === 'token') return issueToken(state, tokenRequest);
  return exchangeToken(state, tokenRequest, issuers);
}

function headerOf({ headers }: ApiRequest, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value : '';
}

/** `-` is the token's own tailnet; the vendor also takes its ID and its domain. */
function expectTailnet(state: State, { params }: RouteMatch & { is: 'route' }): void {
  const { tailnet } = params;
  if (tailnet === undefined || tailnet === '-') return;
  if (state.dialect === 'headscale') throw new Refusal(404, 'tailnet not found');
  if (tailnet !== state.tailnetId && tailnet !== state.domain)
    throw new Refusal(403, 'user tailnet does not match');
}

function callOf(
  state: State,
  request: ApiRequest,
  { params }: RouteMatch & { is: 'route' },
  token: Token,
  noted: Noted,
): Call {
  return {
    params,
    query: request.url.searchParams,
    headers: request.headers,
    body: request.body,
    token,
    hasScope: scope => {
      noted.scopes.add(scope);
      return tokenHasScope(state, token, scope);
    },
  };
}
