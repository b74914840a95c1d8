import type { ConditionUpdate } from '../../api/conditions.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { cutText } from '../../api/text.ts';
import { otherDomainOf } from '../../control/control.ts';
import type { ControlError, TailnetView } from '../../control/control.ts';
import { isClearText } from './clear-text.ts';
import type { AuthenticationProblem } from './connection.ts';
import type { Input } from './gather.ts';
import { scopesFix } from './pool/key-problem.ts';
import { hasFinalizer } from './pool/mesh-pods.ts';

type MeshTailnet = Kinds['MeshTailnet'];

const MAX_MESSAGE_LENGTH = 2000;

/** Whether the control API accepts the credentials. */
export function authenticatedOf(input: Input): ConditionUpdate {
  const { tailnet, olderName, view, origin, trimmed } = input;
  const { tailnet: domain } = tailnet.spec;
  if (olderName !== undefined) {
    const message = `not tried: ${conflictWith(domain, olderName)}`;
    return { type: 'Authenticated', status: 'Unknown', reason: 'Conflict', message };
  }
  if (input.problem) return notAuthenticated(input.problem);
  const problem = errorProblem(view?.error, origin, tailnet) ?? mismatch(view, domain, origin);
  const url = input.controlServer?.controlURL;
  const clearText =
    url !== undefined && isClearText(url)
      ? '; the secret is sent in clear text, because the URL of the control API begins with http: use https'
      : '';
  if (problem)
    return notAuthenticated({
      ...problem,
      message: cutText(problem.message, MAX_MESSAGE_LENGTH) + clearText,
    });
  const spaces =
    trimmed.length === 0
      ? ''
      : `; white space around ${trimmed.join(' and ')} was ignored: store the value without it`;
  const message = `the control API lists devices with the credentials of ${origin}${spaces}${clearText}`;
  return { type: 'Authenticated', status: 'True', reason: 'Authenticated', message };
}

/** Why a MeshTailnet is not used, if an older one has its domain. */
export function conflictWith(domain: string, olderName: string): string {
  return `MeshTailnet ${olderName} is older and has the tailnet ${domain} already: delete one of the two`;
}

function notAuthenticated({ reason, message }: AuthenticationProblem): ConditionUpdate {
  return { type: 'Authenticated', status: 'False', reason, message: cutText(message, MAX_MESSAGE_LENGTH) };
}

function errorProblem(
  error: ControlError | undefined,
  origin: string,
  tailnet: MeshTailnet,
): AuthenticationProblem | undefined {
  if (!error) return undefined;
  const { reason, message, scope = '' } = error;
  switch (reason) {
    case 'CredentialsInvalid':
      return {
        reason,
        message: `the control API refuses the credentials of ${origin} (${message}): store those of an OAuth client that exists and is not revoked`,
      };
    case 'ScopeMissing': {
      const isReader = tailnet.spec.pool.mode === 'External' && !hasFinalizer(tailnet);
      const fix = scopesFix(tailnet.spec, isReader ? 'devices:core:read' : undefined);
      return {
        reason,
        message: `the credentials of ${origin} lack the scope ${scope} (${message}): ${fix}`,
      };
    }
    case 'Throttled':
      return { reason, message: `the control API limits the rate of requests (${message})` };
    case 'NotFound':
    case 'NotSupported':
    case 'Malformed':
      return {
        reason: 'Unreachable',
        message: `what answers is no control API (${message}): check spec.controlURL`,
      };
    case 'Invalid':
    case 'Unavailable':
    case 'Unreachable':
      return {
        reason: 'Unreachable',
        message: `the control API cannot be used (${message}): check spec.controlURL, the network, TLS and the proxy`,
      };
  }
}

function mismatch(
  view: TailnetView | undefined,
  domain: string,
  origin: string,
): AuthenticationProblem | undefined {
  const other = view && otherDomainOf(view, domain);
  if (other === undefined) return undefined;
  return {
    reason: 'TailnetMismatch',
    message: `the credentials of ${origin} belong to the tailnet ${other}, not ${domain}: correct spec.tailnet, or use the credentials of that tailnet`,
  };
}
