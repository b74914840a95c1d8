import type { ControlError } from '../../control/control.ts';

/** Why join keys cannot be created until the credentials or the policy of the tailnet change. */
type KeyProblem = {
  readonly reason: 'KeyRejected' | 'NotAuthenticated';
  /** With the fix. */
  readonly message: string;
};

/** Why a join key with these tags was not created; undefined where another attempt may succeed. */
export function keyProblemOf(error: ControlError, tags: readonly string[]): KeyProblem | undefined {
  const { reason, message, scope = 'auth_keys', status } = error;
  // Headscale refuses tags with 403, too.
  if ((status === 400 || status === 403) && /\btags?\b/i.test(message)) {
    return { reason: 'KeyRejected', message: tagProblem(message, tags) };
  }
  switch (reason) {
    case 'CredentialsInvalid':
      return {
        reason: 'NotAuthenticated',
        message: `the control API refuses the credentials for a join key (${message}): see the condition Authenticated`,
      };
    case 'ScopeMissing':
      return {
        reason: 'NotAuthenticated',
        message: `the credentials lack the scope ${scope}, which creates join keys (${message}): grant it to the OAuth client`,
      };
    case 'Invalid':
    case 'NotFound':
    case 'NotSupported':
      return { reason: 'KeyRejected', message: `the control API refuses to create a join key (${message})` };
    case 'Throttled':
    case 'Unavailable':
    case 'Unreachable':
    case 'Garbled':
      return undefined;
  }
}

/** What both the policy and the OAuth client must have. */
function tagProblem(message: string, tags: readonly string[]): string {
  const owners = Object.fromEntries(tags.map(tag => [tag, ['autogroup:admin']]));
  const snippet = JSON.stringify({ tagOwners: owners });
  const all = tags.join(' and ');
  return `the control API refuses a join key with the tags of spec.tags (${message}): add ${snippet} to the policy file, and give the OAuth client exactly ${all}, or a tag that owns ${tags.length === 1 ? 'it' : 'each of them'}`;
}
