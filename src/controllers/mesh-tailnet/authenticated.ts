import type { ConditionUpdate } from '../../api/conditions.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { conditionOf, formatProblem, within } from '../../api/problem.ts';
import type { ProblemAt, Why } from '../../api/problem.ts';
import { otherDomainOf } from '../../control/control.ts';
import type { ControlError, TailnetView } from '../../control/control.ts';
import { isClearText } from './clear-text.ts';
import type { Input } from './gather.ts';
import { lackingScopes, scopesFix } from './pool/key-problem.ts';
import { hasFinalizer } from './pool/mesh-pods.ts';

type Problem = ProblemAt<'MeshTailnet Authenticated'>;

type MeshTailnet = Kinds['MeshTailnet'];

/** Whether the control API accepts the credentials. */
export function authenticatedOf(input: Input): ConditionUpdate {
  const { tailnet, olderName, view, origin, trimmed, controlServer } = input;
  const { tailnet: domain } = tailnet.spec;
  const clearText =
    controlServer && isClearText(controlServer.controlURL)
      ? '; the secret is sent in clear text, because the URL of the control API begins with http: use https'
      : '';
  const spaces =
    trimmed.length === 0
      ? ''
      : `; white space around ${trimmed.join(' and ')} was ignored: store the value without it`;
  const message = `the control API lists devices with the credentials of ${origin}${spaces}${clearText}`;
  const ifNone = { reason: 'Authenticated', message } as const;
  if (olderName !== undefined) {
    const conflict = within('not tried', conflictWith(domain, olderName));
    return conditionOf('MeshTailnet Authenticated', [{ reason: 'Conflict', ...conflict }], ifNone);
  }
  const found =
    errorProblem(view?.error, origin, tailnet) ??
    mismatch(view, domain, origin) ??
    narrowness(view, tailnet, origin);
  const shown = found && { reason: found.reason, text: `${formatProblem(found)}${clearText}` };
  return conditionOf('MeshTailnet Authenticated', [input.problem ?? shown], ifNone);
}

/** Why a MeshTailnet is not used, if an older one has its domain. */
export function conflictWith(domain: string, olderName: string): Why {
  const text = `MeshTailnet ${olderName} is older and has the tailnet ${domain} already`;
  return { text, fix: 'delete one of the two' };
}

function errorProblem(
  error: ControlError | undefined,
  origin: string,
  tailnet: MeshTailnet,
): Problem | undefined {
  if (!error) return undefined;
  const { reason, message, scope = '' } = error;
  switch (reason) {
    case 'CredentialsInvalid': {
      const fix = 'store those of an OAuth client that exists and is not revoked';
      return { reason, text: `the control API refuses the credentials of ${origin} (${message})`, fix };
    }
    case 'ScopeMissing': {
      const fix = scopesFix(tailnet.spec, isOnlyListed(tailnet) ? 'devices:core:read' : undefined);
      return { reason, text: `the credentials of ${origin} lack the scope ${scope} (${message})`, fix };
    }
    case 'Throttled':
      return { reason, text: `the control API limits the rate of requests (${message})` };
    case 'NotFound':
    case 'NotSupported':
    case 'Malformed': {
      const text = `what answers is no control API (${message})`;
      return { reason: 'Unreachable', text, fix: 'check spec.controlURL' };
    }
    case 'Invalid':
    case 'Unavailable':
    case 'Unreachable': {
      const fix = 'check spec.controlURL, the network, TLS and the proxy';
      return { reason: 'Unreachable', text: `the control API cannot be used (${message})`, fix };
    }
  }
}

/** Whether there are no mesh pods to create and remove. */
function isOnlyListed(tailnet: MeshTailnet): boolean {
  return tailnet.spec.pool.mode === 'External' && !hasFinalizer(tailnet);
}

/** That devices are listed, and the first join key or removal would fail. */
function narrowness(
  view: TailnetView | undefined,
  tailnet: MeshTailnet,
  origin: string,
): Problem | undefined {
  if (isOnlyListed(tailnet)) return undefined;
  const lacking = lackingScopes(view?.token?.scopes ?? []);
  if (lacking.length === 0) return undefined;
  const text = `the credentials of ${origin} lack the scope${lacking.length > 1 ? 's' : ''} ${lacking.join(' and ')}`;
  return { reason: 'ScopeMissing', text, fix: scopesFix(tailnet.spec) };
}

function mismatch(view: TailnetView | undefined, domain: string, origin: string): Problem | undefined {
  const other = view && otherDomainOf(view, domain);
  if (other === undefined) return undefined;
  return {
    reason: 'TailnetMismatch',
    text: `the credentials of ${origin} belong to the tailnet ${other}, not ${domain}`,
    fix: 'correct spec.tailnet, or use the credentials of that tailnet',
  };
}
