import { done, ok, Refusal } from '../answer.ts';
import type { Answer } from '../answer.ts';
import { bodyOf, expectScope, field, isObject, texts } from '../call.ts';
import type { Call } from '../call.ts';
import { isKnownScope, SCOPES_WITH_TAGS } from '../scopes.ts';
import { newKeyId, newSecret } from '../state.ts';
import type { AuthKey, Credential, DeviceCapabilities, Dialect, Key, State } from '../state.ts';
import { expectAssignableTag, expectPermittedTags, isDefinedTag } from './tags.ts';
import { timestamp } from '../time.ts';

/** The scope that each type of key is managed with. */
const SCOPE_OF = { auth: 'auth_keys', client: 'oauth_keys', federated: 'federated_keys' } as const;

const DAY_SECONDS = 24 * 3600;
const MAX_SECONDS = 90 * DAY_SECONDS;
const MAX_DESCRIPTION_LENGTH = 50;

/** What becomes of the secret of a new key; the test control server has its own. */
export type MintedKey = { readonly id: string; readonly secret: string };

/** `POST /tailnet/-/keys`. */
export async function createKey(
  state: State,
  call: Call,
  mint: (key: AuthKey, dialect: Dialect) => Promise<MintedKey>,
): Promise<Answer> {
  const body = bodyOf(call);
  const keyType = field(body, 'keyType', 'string') ?? 'auth';
  if (!isKeyType(keyType)) throw new Refusal(400, `unknown key type "${keyType}"`);
  expectScope(state, call, SCOPE_OF[keyType]);
  const description = descriptionOf(body);
  if (keyType !== 'auth') {
    const credential = createCredential(state, { ...credentialOf(body, keyType), description });
    return ok({ ...wireKey(state, credential), ...('secret' in credential && { key: credential.secret }) });
  }
  const draft = authKeyOf(state, call, body, description);
  const minted = await mint(draft, state.dialect);
  const key: AuthKey = { ...draft, ...minted };
  state.keys.put(key.id, key);
  return ok({ ...wireKey(state, key), key: key.secret });
}

/** `GET /tailnet/-/keys`: those of the types that the token may read. */
export function listKeys(state: State, call: Call): Answer {
  const readable = (Object.keys(SCOPE_OF) as Key['keyType'][]).filter(type =>
    call.hasScope(`${SCOPE_OF[type]}:read`),
  );
  if (readable.length === 0 && state.dialect === 'vendor') expectScope(state, call, 'auth_keys:read');
  const keys = state.keys.list().filter(key => readable.includes(key.keyType) && !isReaped(state, key));
  return ok({ keys: keys.map(key => wireKey(state, key)) });
}

/** `GET /tailnet/-/keys/{id}`; every token may read the credential that it was made for. */
export function getKey(state: State, call: Call): Answer {
  const key = presentKey(state, state.keys.read(call.params['id'] ?? ''));
  if (key?.id !== call.token.credential) expectScope(state, call, `${SCOPE_OF[key?.keyType ?? 'auth']}:read`);
  if (!key) throw new Refusal(404, 'key not found');
  return ok(wireKey(state, key));
}

/** `DELETE /tailnet/-/keys/{id}`: the key is still readable, and invalid; headscale deletes a credential. */
export async function deleteKey(
  state: State,
  call: Call,
  revoke: (id: string) => Promise<void>,
): Promise<Answer> {
  const key = presentKey(state, state.keys.current(call.params['id'] ?? ''));
  expectScope(state, call, SCOPE_OF[key?.keyType ?? 'auth']);
  if (!key) throw new Refusal(404, 'key not found');
  if (key.keyType === 'auth') await revoke(key.id);
  revokeKey(state, key.id);
  return done(state.dialect);
}

/** Ends a key; a credential's tokens end with it. */
export function revokeKey(state: State, id: string): void {
  const key = state.keys.current(id);
  if (!key) return;
  if (state.dialect === 'headscale' && key.keyType !== 'auth') state.keys.delete(id);
  else if (key.revokedMs === undefined) state.keys.put(id, { ...key, revokedMs: state.clock.now() });
}

const REAPED_AFTER_MS = 7 * DAY_SECONDS * 1000;

/** Whether headscale has deleted a key, which it does a week after the key was revoked. */
function isReaped({ dialect, clock }: State, { revokedMs = Infinity }: Key): boolean {
  return dialect === 'headscale' && clock.now() >= revokedMs + REAPED_AFTER_MS;
}

function presentKey(state: State, key: Key | undefined): Key | undefined {
  return key && !isReaped(state, key) ? key : undefined;
}

/** Makes a credential; one that acts on devices must have tags. */
export function createCredential(state: State, wanted: CredentialOptions): Credential {
  const { keyType, scopes, tags = [], description = '' } = wanted;
  const unknown = scopes.filter(scope => !isKnownScope(scope, state.behaviour.scopeNames));
  if (unknown.length > 0 && state.dialect === 'vendor')
    throw new Refusal(400, `unknown scopes [${unknown.join(' ')}]`);
  if (tags.length === 0 && scopes.some(scope => SCOPES_WITH_TAGS.includes(scope)))
    throw new Refusal(400, 'tags are required for scopes devices:core and auth_keys');
  const id = newKeyId(state, keyType);
  const base = { id, description, createdMs: state.clock.now(), scopes, tags };
  const credential: Credential =
    wanted.keyType === 'client'
      ? { ...base, keyType: 'client', secret: newSecret(state, 'client', id) }
      : {
          ...base,
          keyType: 'federated',
          issuer: wanted.issuer,
          subject: wanted.subject,
          audience: wanted.audience,
          customClaimRules: wanted.customClaimRules ?? {},
        };
  state.keys.put(id, credential);
  return credential;
}

/** A credential to make. */
export type CredentialOptions = {
  readonly scopes: readonly string[];
  readonly tags?: readonly string[];
  readonly description?: string;
} & (
  | { readonly keyType: 'client' }
  | {
      readonly keyType: 'federated';
      readonly issuer: string;
      readonly subject: string;
      readonly audience: string;
      readonly customClaimRules?: Readonly<Record<string, string>>;
    }
);

function isKeyType(text: string): text is Key['keyType'] {
  return Object.hasOwn(SCOPE_OF, text);
}

function descriptionOf(body: Readonly<Record<string, unknown>>): string {
  const description = field(body, 'description', 'string') ?? '';
  if (description.length > MAX_DESCRIPTION_LENGTH)
    throw new Refusal(400, `description must have at most ${MAX_DESCRIPTION_LENGTH} characters`);
  if (!/^[a-zA-Z0-9 -]*$/.test(description))
    throw new Refusal(400, 'description may contain only letters, digits, spaces and hyphens');
  return description;
}

function credentialOf(
  body: Readonly<Record<string, unknown>>,
  keyType: 'client' | 'federated',
): CredentialOptions {
  const base = { scopes: texts(body, 'scopes'), tags: texts(body, 'tags') };
  if (keyType === 'client') return { ...base, keyType };
  const [issuer, subject] = [field(body, 'issuer', 'string') ?? '', field(body, 'subject', 'string') ?? ''];
  if (issuer === '' || subject === '') throw new Refusal(400, 'issuer and subject are required');
  const rules = body['customClaimRules'];
  const customClaimRules = isObject(rules) ? (rules as Readonly<Record<string, string>>) : {};
  return {
    ...base,
    keyType,
    issuer,
    subject,
    audience: field(body, 'audience', 'string') ?? '',
    customClaimRules,
  };
}

function authKeyOf(
  state: State,
  call: Call,
  body: Readonly<Record<string, unknown>>,
  description: string,
): AuthKey {
  const expirySeconds = field(body, 'expirySeconds', 'number') || MAX_SECONDS;
  if (expirySeconds < 0 || expirySeconds > MAX_SECONDS || !Number.isInteger(expirySeconds))
    throw new Refusal(400, `expirySeconds must be between 1 and ${MAX_SECONDS}`);
  const capabilities = capabilitiesOf(state, body);
  expectTags(state, call, capabilities.tags);
  const id = newKeyId(state, 'auth');
  return {
    id,
    keyType: 'auth',
    description,
    createdMs: state.clock.now(),
    secret: newSecret(state, 'auth', id),
    expirySeconds,
    capabilities,
    uses: 0,
  };
}

function capabilitiesOf(state: State, body: Readonly<Record<string, unknown>>): DeviceCapabilities {
  const { capabilities } = body;
  const devices = isObject(capabilities) ? capabilities['devices'] : undefined;
  const create = isObject(devices) && isObject(devices['create']) ? devices['create'] : {};
  const missing = ['reusable', 'ephemeral', 'preauthorized'].filter(name => create[name] === undefined);
  if (state.dialect === 'headscale' && missing.length > 0) {
    const faults = missing.map(
      name => `expected required property ${name} to be present (body.capabilities.devices.create)`,
    );
    throw new Refusal(422, 'validation failed', faults);
  }
  return {
    reusable: field(create, 'reusable', 'boolean') ?? false,
    ephemeral: field(create, 'ephemeral', 'boolean') ?? false,
    preauthorized: state.dialect === 'headscale' || (field(create, 'preauthorized', 'boolean') ?? false),
    tags: texts(create, 'tags'),
  };
}

/** Keys that credentials make must have tags, and such as they may give. */
function expectTags(state: State, { token }: Call, tags: readonly string[]): void {
  if (state.dialect === 'headscale') {
    if (tags.length === 0) throw new Refusal(403, 'an OAuth client must create tagged auth keys');
    for (const tag of tags) {
      if (!isDefinedTag(tag, token.tags, state))
        throw new Refusal(400, `tag ${tag} is not defined in policy`);
      expectAssignableTag(tag, token.tags, state.policy);
    }
    return;
  }
  if (tags.length === 0) throw new Refusal(400, 'requested tags [] are invalid or not permitted');
  expectPermittedTags(tags, token.tags, state.policy);
}

/** The key with a secret; fails in the words of the control server if no device can join with it. */
export function redeemableKey(state: State, secret: string): AuthKey {
  const isHeadscale = state.dialect === 'headscale';
  const key = state.keys.all().find((one): one is AuthKey => one.keyType === 'auth' && one.secret === secret);
  if (!key || isReaped(state, key))
    throw new Error(isHeadscale ? 'invalid pre auth key' : 'invalid key: unknown auth key');
  const fault = authKeyFault(state, key);
  if (fault === undefined) return key;
  if (isHeadscale) throw new Error(`authkey ${fault === 'used' ? 'already used' : fault}`);
  throw new Error(`invalid key: auth key ${key.id} is ${fault}`);
}

/** Whether a device can still join with a key, and why not. */
export function authKeyFault({ clock }: State, key: AuthKey): 'revoked' | 'expired' | 'used' | undefined {
  if (key.revokedMs !== undefined) return 'revoked';
  if (clock.now() >= expiryOf(key)) return 'expired';
  return !key.capabilities.reusable && key.uses > 0 ? 'used' : undefined;
}

function expiryOf({ createdMs, expirySeconds }: AuthKey): number {
  return createdMs + expirySeconds * 1000;
}

function wireKey(state: State, key: Key): Readonly<Record<string, unknown>> {
  const { id, keyType, description, createdMs, revokedMs } = key;
  const base = {
    id,
    keyType,
    ...(state.dialect === 'vendor' || description !== '' ? { description } : {}),
    created: timestamp(createdMs),
    ...(state.dialect === 'vendor' || revokedMs !== undefined ? { revoked: timestamp(revokedMs) } : {}),
  };
  if (key.keyType !== 'auth') {
    const { scopes, tags } = key;
    const trust =
      key.keyType === 'federated'
        ? {
            issuer: key.issuer,
            subject: key.subject,
            audience: key.audience,
            customClaimRules: key.customClaimRules,
          }
        : {};
    return { ...base, scopes, tags, invalid: revokedMs !== undefined, ...trust };
  }
  const { capabilities, expirySeconds } = key;
  return {
    ...base,
    expirySeconds,
    expires: timestamp(expiryOf(key)),
    invalid: authKeyFault(state, key) !== undefined,
    capabilities: { devices: { create: capabilities } },
    ...(state.dialect === 'headscale' ? { tags: capabilities.tags } : { userId: '' }),
  };
}
