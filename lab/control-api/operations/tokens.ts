import { createLocalJWKSet, jwtVerify } from 'jose';
import type { JSONWebKeySet, JWTPayload } from 'jose';
import { Refusal, refusalAnswer } from '../answer.ts';
import type { Answer } from '../answer.ts';
import { includesScope } from '../scopes.ts';
import { newToken } from '../state.ts';
import type { Credential, State, Token, Trust } from '../state.ts';
import { arePermittedTags } from './tags.ts';

/** A request to an endpoint that issues tokens. */
export type TokenRequest = {
  readonly contentType: string;
  readonly authorization: string;
  readonly body: string;
};

/** Both servers issue tokens for one hour only. */
const LIFETIME_SECONDS = 3600;

/** The answers of both dialects to one invalid token request: the vendor's status and message, then the OAuth error. */
type Fault = readonly [vendorStatus: number, vendorText: string, status: number, error: string, text: string];

const WRONG_CLIENT: Fault = [401, 'API token invalid', 401, 'invalid_client', 'invalid client credentials'];

/** `POST /oauth/token`: exchanges the ID and secret of an OAuth client for a token. */
export function issueToken(state: State, request: TokenRequest): Answer {
  const form = formOf(request);
  if (!form) {
    const text = 'content type must be application/x-www-form-urlencoded';
    const missing = 'missing client credentials';
    return refuse(state, [400, text, 401, 'invalid_client', missing]);
  }
  const grantType = form.get('grant_type') ?? 'client_credentials';
  if (grantType !== 'client_credentials') {
    const text = `unsupported grant type "${grantType}"`;
    return refuse(state, [400, text, 400, 'unsupported_grant_type', text]);
  }
  const client = clientOf(state, request, form);
  return client ? grant(state, client, form) : refuse(state, WRONG_CLIENT);
}

/** `POST /oauth/token-exchange`: exchanges a signed token of another issuer for an access token. */
export async function exchangeToken(
  state: State,
  request: TokenRequest,
  issuers: ReadonlyMap<string, JSONWebKeySet>,
): Promise<Answer> {
  const form = formOf(request);
  const jwt = form?.get('jwt') ?? '';
  if (!form || jwt === '') return refusalAnswer(state.dialect, new Refusal(400, 'missing client_id or jwt'));
  const identity = state.keys.current(form.get('client_id') ?? '');
  if (identity?.keyType !== 'federated' || identity.revokedMs !== undefined)
    return refuse(state, WRONG_CLIENT);
  const fault = await faultOf(jwt, identity, issuers, state.clock.now());
  if (fault !== undefined) return refusalAnswer(state.dialect, new Refusal(401, fault));
  return grant(state, identity, form);
}

/** The token that a call carries, as a bearer token or as the user name of basic authentication. */
export function authenticate(state: State, authorization: string): Token {
  const basic = basicOf(authorization)?.[0];
  const secret = basic ?? /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
  const token = state.tokens.get(secret);
  const credential = token && state.keys.current(token.credential);
  const isGood = token && token.expiresMs > state.clock.now() && credential?.revokedMs === undefined;
  if (isGood && credential) return token;
  throw new Refusal(401, state.dialect === 'vendor' ? 'API token invalid' : 'unauthorized');
}

function formOf({ contentType, body }: TokenRequest): URLSearchParams | undefined {
  const isForm = contentType.split(';')[0]?.trim() === 'application/x-www-form-urlencoded';
  return isForm ? new URLSearchParams(body) : undefined;
}

/** The ID and secret are in the body, or in basic authentication, where RFC 6749 form-encodes each of them. */
function clientOf(state: State, request: TokenRequest, form: URLSearchParams): Credential | undefined {
  const basic = basicOf(request.authorization)?.map(decodeURIComponent);
  const [id, secret] = basic ?? [form.get('client_id') ?? '', form.get('client_secret') ?? ''];
  const isClient = (key: Credential) =>
    key.keyType === 'client' &&
    key.secret === secret &&
    (state.dialect === 'headscale' || key.id === id) &&
    key.revokedMs === undefined;
  return state.keys.all().find((key): key is Credential => key.keyType !== 'auth' && isClient(key));
}

function basicOf(authorization: string): readonly [string, string] | undefined {
  const encoded = /^basic +(\S+)$/i.exec(authorization)?.[1];
  if (encoded === undefined) return undefined;
  const [user = '', ...password] = Buffer.from(encoded, 'base64').toString().split(':');
  return [user, password.join(':')];
}

/** Requested scopes and tags narrow those of the credential. */
function grant(state: State, credential: Credential, form: URLSearchParams): Answer {
  const words = (name: string) => (form.get(name) ?? '').split(' ').filter(word => word !== '');
  const [scopes, tags] = [words('scope'), words('tags')];
  const wrong = scopes.filter(scope => !includesScope(credential.scopes, scope, state.behaviour.scopeNames));
  if (wrong.length > 0) {
    const text = `scope ${wrong[0]} is not granted to this client`;
    return refuse(state, [
      403,
      `OAuth client cannot grant scopes "${wrong.join(' ')}"`,
      400,
      'invalid_scope',
      text,
    ]);
  }
  if (tags.length > 0 && !arePermittedTags(tags, credential.tags, state.policy)) {
    const text = `requested tags [${tags.join(' ')}] are invalid or not permitted`;
    return refuse(state, [400, text, 400, 'invalid_target', text]);
  }
  const token = {
    credential: credential.id,
    scopes: scopes.length > 0 ? scopes : credential.scopes,
    tags: tags.length > 0 ? tags : credential.tags,
    expiresMs: state.clock.now() + LIFETIME_SECONDS * 1000,
  };
  const secret = newToken(state);
  state.tokens.set(secret, token);
  const answer = {
    access_token: secret,
    token_type: 'Bearer',
    expires_in: LIFETIME_SECONDS,
    scope: [...token.scopes].sort().join(' '),
  };
  return { status: 200, json: answer, headers: NO_STORE };
}

const NO_STORE = { 'cache-control': 'no-store', pragma: 'no-cache' };

/** The vendor's error body is that of its whole API, headscale's that of RFC 6749. */
function refuse({ dialect }: State, [vendorStatus, vendorText, status, error, text]: Fault): Answer {
  if (dialect === 'vendor') return refusalAnswer(dialect, new Refusal(vendorStatus, vendorText));
  return { status, json: { error, error_description: text }, headers: NO_STORE };
}

/** Why a token of another issuer does not prove an identity. */
async function faultOf(
  jwt: string,
  trust: Trust,
  issuers: ReadonlyMap<string, JSONWebKeySet>,
  nowMs: number,
): Promise<string | undefined> {
  const keys = issuers.get(trust.issuer);
  if (!keys) return `issuer ${trust.issuer} cannot be reached`;
  try {
    const { payload } = await jwtVerify(jwt, createLocalJWKSet(keys), {
      issuer: trust.issuer,
      audience: trust.audience,
      currentDate: new Date(nowMs),
      requiredClaims: ['exp', 'sub'],
    });
    return mismatchOf(payload, trust);
  } catch (error) {
    return `JWT is not valid: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function mismatchOf(claims: JWTPayload, { subject, customClaimRules }: Trust): string | undefined {
  if (!matches(subject, claims.sub)) return 'JWT is not valid: subject does not match';
  const wrong = Object.entries(customClaimRules).find(([name, pattern]) => !matches(pattern, claims[name]));
  return wrong ? `JWT is not valid: claim ${wrong[0]} does not match` : undefined;
}

/** Whether a claim is equal to a pattern, in which `*` stands for any text. */
function matches(pattern: string, claim: unknown): boolean {
  const parts = pattern.split('*').map(part => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return typeof claim === 'string' && new RegExp(`^${parts.join('.*')}$`).test(claim);
}
