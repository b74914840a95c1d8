import type { Kinds } from '../../../api/generated/types.ts';
import type { ControlError } from '../../../control/control.ts';

type Spec = Pick<Kinds['MeshTailnet']['spec'], 'oauth' | 'tags'>;

/** Why join keys cannot be created until the credentials or the policy of the tailnet change. */
type KeyProblem = {
  readonly reason: 'KeyRejected' | 'LimitReached' | 'NotAuthenticated';
  /** With the fix. */
  readonly message: string;
};

/** The fix for a missing scope: all scopes at once, because a pool that starts with fewer cannot be removed. */
export function scopesFix({ oauth }: Spec, needed = 'devices:core and auth_keys'): string {
  const narrowed = (oauth.scopes ?? []).length > 0 ? ', and list that in spec.oauth.scopes' : '';
  return `grant the client ${needed}, which is what the operator needs${narrowed}`;
}

/** Why a step fails until the credentials have the scope for it. */
export function scopeProblemOf(error: ControlError, spec: Spec): KeyProblem | undefined {
  const { reason, message, scope = '' } = error;
  if (reason !== 'ScopeMissing') return undefined;
  return {
    reason: 'NotAuthenticated',
    message: `the credentials lack the scope ${scope} (${message}): ${scopesFix(spec)}`,
  };
}

/** Why a join key was not created; undefined where another attempt may succeed. */
export function keyProblemOf(error: ControlError, spec: Spec): KeyProblem | undefined {
  const { reason, message, status } = error;
  // Headscale refuses tags with 403, too.
  if ((status === 400 || status === 403) && /\btags?\b/i.test(message)) {
    return { reason: 'KeyRejected', message: tagProblem(message, spec.tags) };
  }
  // Payment required: the plan of the tailnet has a limit.
  if (status === 402) {
    const fix = 'remove devices and keys that are not used, or raise the limit of its plan';
    return {
      reason: 'LimitReached',
      message: `a limit of the tailnet keeps mesh pods out (${message}): ${fix}`,
    };
  }
  switch (reason) {
    case 'CredentialsInvalid':
      return {
        reason: 'NotAuthenticated',
        message: `the control API refuses the credentials for a join key (${message}): see the condition Authenticated`,
      };
    case 'ScopeMissing':
      return scopeProblemOf(error, spec);
    case 'Invalid':
    case 'NotFound':
    case 'NotSupported':
      return { reason: 'KeyRejected', message: `the control API refuses to create a join key (${message})` };
    case 'Throttled':
    case 'Unavailable':
    case 'Unreachable':
    case 'Malformed':
      return undefined;
  }
}

/** What both the policy and the OAuth client must have. No owners is what the vendor and headscale both accept. */
function tagProblem(message: string, tags: readonly string[]): string {
  const snippet = JSON.stringify({ tagOwners: Object.fromEntries(tags.map(tag => [tag, []])) });
  const all = tags.join(' and ');
  return `the control API refuses a join key with the tags of spec.tags (${message}): the policy file must have them in tagOwners, as in ${snippet}, and the OAuth client exactly ${all}, or a tag that owns ${tags.length === 1 ? 'it' : 'each of them'}`;
}
