import { afterEach, describe, expect, it } from 'vitest';
import type { ControlApiOptions } from '../../../../lab/control-api/control-api.ts';
import type { Policy } from '../../../../lab/control-api/state.ts';
import { ControlError } from '../../../../src/control/control.ts';
import type { ControlErrorReason } from '../../../../src/control/control.ts';
import { keyProblemOf } from '../../../../src/controllers/mesh-tailnet/pool/key-problem.ts';
import { failureOf, startClient } from '../../../support/control/client.ts';

function specOf(tags: readonly string[], scopes: readonly string[] = []) {
  const oauth = {
    secretRef: { name: 'mesh-oauth' },
    clientIdKey: 'client-id',
    clientSecretKey: 'client-secret',
  };
  return { tags, oauth: { ...oauth, scopes } };
}

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const KEY = { description: 'a', expirySeconds: 3600, ephemeral: false, preauthorized: true };

/** A control API for an OAuth client with some tags. */
async function controlOf(api: ControlApiOptions, own: readonly string[], scopes: readonly string[]) {
  const client = await startClient({ api, scopes });
  closing.push(client.close);
  const { id, secret } = client.api.addClient(scopes, own);
  await client.tokens.use({ kind: 'oauth', clientId: id, clientSecret: secret });
  return client.control;
}

/** Why a control API creates no key with some tags, for an OAuth client with others. */
async function refusalOf(api: ControlApiOptions, tags: readonly string[], scopes: readonly string[]) {
  const control = await controlOf(api, ['tag:other'], scopes);
  return await failureOf(control.createKey({ ...KEY, tags }));
}

describe('a join key', () => {
  it.each(['vendor', 'headscale'] as const)(
    'with tags that the OAuth client may not assign needs a policy and tags, which %s accepts',
    async dialect => {
      const tags = ['tag:mesh', 'tag:web'];
      const error = await refusalOf({ dialect }, tags, ['auth_keys']);
      const { reason, text, fix = '' } = keyProblemOf(error, specOf(tags)) ?? {};
      expect(reason).toBe('KeyRejected');
      expect(text).toContain(`(${error.message})`);
      const [policy = ''] = /\{"tagOwners".*?\}\}/.exec(fix) ?? [];
      expect(fix).toContain('the OAuth client exactly tag:mesh and tag:web, or a tag that owns each of them');
      const control = await controlOf({ dialect, policy: JSON.parse(policy) as Policy }, tags, ['auth_keys']);
      await expect(control.createKey({ ...KEY, tags })).resolves.toHaveProperty('id');
    },
  );

  it.each(['vendor', 'headscale'] as const)(
    'without the scope for it names that of %s, and all that the client needs',
    async dialect => {
      const error = await refusalOf({ dialect }, ['tag:other'], ['devices:core']);
      const problem = keyProblemOf(error, specOf(['tag:other']));
      expect(problem?.reason).toBe('NotAuthenticated');
      expect(problem?.text).toContain('lack the scope auth_keys');
      expect(problem?.fix).toContain('grant the client devices:core and auth_keys');
      expect(problem?.fix).not.toContain('spec.oauth.scopes');
    },
  );

  it('without a scope that spec.oauth.scopes may have left out names that field', async () => {
    const error = await refusalOf({}, ['tag:other'], ['devices:core']);
    const problem = keyProblemOf(error, specOf(['tag:other'], ['devices:core']));
    expect(problem?.fix).toContain('and list that in spec.oauth.scopes');
  });

  const CASES: readonly (readonly [ControlErrorReason, number | undefined, string | undefined])[] = [
    ['CredentialsInvalid', 401, 'NotAuthenticated'],
    ['Invalid', 402, 'LimitReached'],
    ['Invalid', 409, 'KeyRejected'],
    ['NotFound', 404, 'KeyRejected'],
    ['NotSupported', 501, 'KeyRejected'],
    ['Throttled', 429, undefined],
    ['Unavailable', 503, undefined],
    ['Unreachable', undefined, undefined],
    ['Malformed', 200, undefined],
  ];
  it.each(CASES)('refused as %s with status %s has the problem %s', (reason, status, expected) => {
    const error = new ControlError(reason, 'no', status === undefined ? {} : { status });
    expect(keyProblemOf(error, specOf(['tag:mesh']))?.reason).toBe(expected);
  });
});
