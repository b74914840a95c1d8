import { ok, Refusal } from '../answer.ts';
import type { Answer } from '../answer.ts';
import { bodyOf, expectScope } from '../call.ts';
import type { Call } from '../call.ts';
import type { State } from '../state.ts';

/** The scopes of the fields that are not part of `feature_settings`. */
const SCOPE_OF: Readonly<Record<string, string>> = {
  aclsExternallyManagedOn: 'policy_file',
  aclsExternalLink: 'policy_file',
  networkFlowLoggingOn: 'logs:network',
  regionalRoutingOn: 'networking_settings',
  httpsEnabled: 'networking_settings',
};

function scopeOf(name: string): string {
  return SCOPE_OF[name] ?? 'feature_settings';
}

/** `GET /tailnet/-/settings`: the fields that the token may read. */
export function getSettings(state: State, call: Call): Answer {
  const readable = Object.entries(state.settings).filter(([name]) => call.hasScope(`${scopeOf(name)}:read`));
  if (readable.length === 0 || state.dialect === 'headscale')
    expectScope(state, call, 'feature_settings:read');
  return ok(Object.fromEntries(state.dialect === 'headscale' ? Object.entries(state.settings) : readable));
}

/** `PATCH /tailnet/-/settings`: all fields that are given, or none. */
export function updateSettings(state: State, call: Call): Answer {
  if (state.dialect === 'headscale') {
    expectScope(state, call, 'feature_settings');
    throw new Refusal(501, 'settings cannot be changed');
  }
  const changes = Object.entries(bodyOf(call)).filter(([, value]) => value !== null);
  for (const [name, value] of changes) {
    const current = state.settings[name];
    if (current === undefined) throw new Refusal(400, `unknown setting ${name}`);
    expectScope(state, call, scopeOf(name));
    if (typeof value !== typeof current) throw new Refusal(400, `${name} must be a ${typeof current}`);
  }
  const { devicesKeyDurationDays: days } = Object.fromEntries(changes);
  if (days !== undefined && (Number(days) < 1 || Number(days) > 180))
    throw new Refusal(400, 'devicesKeyDurationDays must be between 1 and 180');
  state.settings = { ...state.settings, ...(Object.fromEntries(changes) as State['settings']) };
  return getSettings(state, call);
}
