/** Old names of scopes, which clients that were made long ago still hold. */
const LEGACY: Readonly<Record<string, readonly string[]>> = {
  devices: ['devices:core', 'auth_keys', 'devices:posture_attributes'],
  routes: ['devices:routes'],
  acl: ['policy_file'],
  logs: ['logs:configuration'],
  'network-logs': ['logs:network'],
};

/** The scopes that specification documents of clients name although no control server knows them. */
const CONTRACT: Readonly<Record<string, readonly string[]>> = {
  'device:create': ['auth_keys'],
  'device:read': ['devices:core:read', 'devices:routes:read'],
  'device:write': ['devices:core', 'devices:routes', 'services'],
  'tailnet:read': ['feature_settings:read', 'services:read'],
};

const READABLE = [
  'devices:core',
  'devices:routes',
  'devices:posture_attributes',
  'device_invites',
  'auth_keys',
  'oauth_keys',
  'api_access_tokens',
  'federated_keys',
  'policy_file',
  'dns',
  'users',
  'services',
  'feature_settings',
  'networking_settings',
  'account_settings',
  'logs:network',
  'logs:configuration',
  'log_streaming',
  'webhooks',
  'oauth_apps',
  'tailnets',
  'all',
];

/** Every scope that a new OAuth client can be given. */
const SCOPES: readonly string[] = READABLE.flatMap(scope => [scope, `${scope}:read`]);

/** The scopes that make a credential act on devices, so it must have tags. */
export const SCOPES_WITH_TAGS: readonly string[] = ['devices:core', 'auth_keys'];

/** How a server reads the names of scopes. */
export type ScopeNames = {
  /** Whether the four names of the contract mean what they are meant to; real servers do not know them. */
  readonly contract: boolean;
};

/** Whether granted scopes include a needed one. */
export function includesScope(
  granted: readonly string[],
  needed: string,
  names: ScopeNames = { contract: false },
): boolean {
  return granted.flatMap(scope => expand(scope, names)).some(scope => covers(scope, needed));
}

/** Whether a server knows the name of a scope. */
export function isKnownScope(scope: string, names: ScopeNames): boolean {
  return expand(scope, names).every(one => SCOPES.includes(one));
}

/** The present names of a scope. */
function expand(scope: string, { contract }: ScopeNames): readonly string[] {
  const fromContract = contract ? CONTRACT[scope] : undefined;
  if (fromContract) return fromContract;
  const base = scope.replace(/:read$/, '');
  const present = LEGACY[base];
  if (!present) return [scope];
  return base === scope ? present : present.map(one => `${one}:read`);
}

/** Write includes read; `all` includes everything, `all:read` every read. */
function covers(granted: string, needed: string): boolean {
  if (granted === 'all' || granted === needed || `${granted}:read` === needed) return true;
  return granted === 'all:read' && needed.endsWith(':read');
}
