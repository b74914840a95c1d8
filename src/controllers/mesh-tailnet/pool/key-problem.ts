import type { Kinds } from '../../../api/generated/types.ts';
import type { ProblemAt } from '../../../api/problem.ts';
import type { ControlError } from '../../../control/control.ts';

type Problem = ProblemAt<'MeshTailnet PoolReady'>;

type Spec = Pick<Kinds['MeshTailnet']['spec'], 'oauth' | 'tags'>;

/** By what includes them. */
const OF_POOLS = {
  'devices:core': ['all', 'devices', 'devices:core'],
  auth_keys: ['all', 'devices', 'auth_keys'],
};

/** Scopes of the vendor and of headscale that pools do not need. */
const OF_OTHERS =
  /^(devices:(routes|posture_attributes)|device_invites|oauth_keys|policy_file|acl|dns|users|services|routes|\w+_settings)$/;

/** The scopes of pools that a client lacks; none where it has a scope that is not known here. */
export function lackingScopes(granted: readonly string[]): readonly string[] {
  const known = Object.values(OF_POOLS).flat();
  const isKnown = granted.every(scope => {
    const name = scope.replace(/:read$/, '');
    return known.includes(name) || OF_OTHERS.test(name);
  });
  if (granted.length === 0 || !isKnown) return [];
  return Object.entries(OF_POOLS).flatMap(([scope, by]) =>
    by.some(each => granted.includes(each)) ? [] : scope,
  );
}

/** The fix for a missing scope: all scopes at once, because a pool that starts with fewer cannot be removed. */
export function scopesFix({ oauth }: Spec, needed = 'devices:core and auth_keys'): string {
  const narrowed = (oauth.scopes ?? []).length > 0 ? ', and list that in spec.oauth.scopes' : '';
  return `grant the client ${needed}, which is what the operator needs${narrowed}`;
}

/** Why a step fails until the credentials have the scope for it. */
export function scopeProblemOf(error: ControlError, spec: Spec): Problem | undefined {
  const { reason, message, scope = '' } = error;
  if (reason !== 'ScopeMissing') return undefined;
  const text = `the credentials lack the scope ${scope} (${message})`;
  return { reason: 'NotAuthenticated', text, fix: scopesFix(spec) };
}

/** Why a join key was not created; undefined where another attempt may succeed. */
export function keyProblemOf(error: ControlError, spec: Spec): Problem | undefined {
  const { reason, message, status } = error;
  // Headscale refuses tags with 403, too.
  if ((status === 400 || status === 403) && /\btags?\b/i.test(message)) return tagProblem(message, spec.tags);
  // Payment required: the plan of the tailnet has a limit.
  if (status === 402) {
    const fix = 'remove devices and keys that are not used, or raise the limit of its plan';
    return { reason: 'LimitReached', text: `a limit of the tailnet keeps mesh pods out (${message})`, fix };
  }
  switch (reason) {
    case 'CredentialsInvalid': {
      const text = `the control API refuses the credentials for a join key (${message})`;
      return { reason: 'NotAuthenticated', text, fix: 'see the condition Authenticated' };
    }
    case 'ScopeMissing':
      return scopeProblemOf(error, spec);
    case 'Invalid':
    case 'NotFound':
    case 'NotSupported':
      return { reason: 'KeyRejected', text: `the control API refuses to create a join key (${message})` };
    case 'Throttled':
    case 'Unavailable':
    case 'Unreachable':
    case 'Malformed':
      return undefined;
  }
}

/** What both the policy and the OAuth client must have. No owners is what the vendor and headscale both accept. */
function tagProblem(message: string, tags: readonly string[]): Problem {
  const snippet = JSON.stringify({ tagOwners: Object.fromEntries(tags.map(tag => [tag, []])) });
  const owned = tags.length === 1 ? 'it' : 'each of them';
  return {
    reason: 'KeyRejected',
    text: `the control API refuses a join key with the tags of spec.tags (${message})`,
    fix: `the policy file must have them in tagOwners, as in ${snippet}, and the OAuth client exactly ${tags.join(' and ')}, or a tag that owns ${owned}`,
  };
}
