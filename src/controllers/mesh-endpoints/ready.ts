import { findCondition } from '../../api/conditions.ts';
import type { ConditionUpdate } from '../../api/conditions.ts';
import { API_VERSION } from '../../api/generated/kinds.ts';
import type { EndpointStatus, EndpointSummary, Kinds } from '../../api/generated/types.ts';
import { createdTailnetName, defaultControlURL, OAUTH_SECRET } from '../../api/names.ts';
import { conditionOf, formatProblem, within } from '../../api/problem.ts';
import type { ProblemAt } from '../../api/problem.ts';
import { poolProblemOf } from '../../traffic/data-path.ts';
import { namespaceNotAllowed } from '../../traffic/permissions.ts';
import type { PlannedEndpoint } from './plan.ts';

type Problem = ProblemAt<'MeshEndpoints Ready'>;

/** What decides whether a MeshEndpoints is ready. */
type ReadyInput = {
  readonly object: Kinds['MeshEndpoints'];
  /** The MeshTailnet of its domain. */
  readonly tailnet: Kinds['MeshTailnet'] | undefined;
  /** The control API of MeshTailnets that name none. */
  readonly controlURL: string | undefined;
  /** Whether the MeshTailnet allows the namespace of the object. */
  readonly isAllowed: boolean;
  readonly planned: readonly PlannedEndpoint[];
  readonly entries: readonly EndpointStatus[];
  readonly summary: EndpointSummary;
  /** The condition Discovered; undefined without selectors. */
  readonly discovered: ConditionUpdate | undefined;
};

/** The condition Ready: the first reason that applies, or True. */
export function readyOf(input: ReadyInput): ConditionUpdate {
  return readyUnless(problemOf(input), input.summary.ready);
}

function readyUnless(problem: Problem | undefined, ready = ''): ConditionUpdate {
  const message = `${ready} endpoints are healthy or not checked`;
  return conditionOf('MeshEndpoints Ready', [problem], { reason: 'EndpointsConfigured', message });
}

function problemOf({
  object,
  tailnet,
  controlURL,
  isAllowed,
  planned,
  ...rest
}: ReadyInput): Problem | undefined {
  const { entries, summary, discovered } = rest;
  if (!tailnet) return tailnetNotFound(object.spec.tailnet, controlURL);
  if (!isAllowed) return namespaceNotAllowed(tailnet.metadata.name, object.metadata.namespace ?? '');
  // A pool that carries traffic needs no credentials for it.
  const credentials = poolProblemOf(tailnet) && credentialsProblem(tailnet);
  if (credentials) return credentials;
  const references = planned.flatMap(({ endpoint, inputs }) => {
    const problem = inputs.problem ?? inputs.checkProblem ?? inputs.outdated;
    return problem ? [formatProblem(within(`endpoint ${endpoint.name}`, problem))] : [];
  });
  if (references.length > 0) return { reason: 'InvalidReference', text: firstOf(references) };
  const unread = planned.some(({ inputs }) => inputs.isCheckPending === true) && writtenProblem(object);
  if (unread) return { reason: 'InvalidReference', text: unread };
  if (planned.length === 0) return noEndpoints(discovered);
  return summary.healthy === 0 ? noneHealthy(entries, tailnet) : undefined;
}

/** What an earlier process has found wrong with the references of the present spec, which this one has yet to read. */
function writtenProblem({ metadata, status }: Kinds['MeshEndpoints']): string | undefined {
  const before = findCondition(status?.conditions, 'Ready');
  const isCurrent = before?.observedGeneration === metadata.generation;
  return isCurrent && before?.reason === 'InvalidReference' ? before.message : undefined;
}

/** The condition Ready of a paused object. */
export const PAUSED = readyUnless({
  reason: 'Paused',
  text: 'spec.paused is true: nothing is checked, and the rest of this status stays as it is. Set it to false to continue',
});

function noEndpoints(discovered: ConditionUpdate | undefined): Problem {
  const reason = 'NoEndpoints';
  return discovered
    ? { reason, text: `spec.tagSelectors finds no endpoints: ${discovered.message}` }
    : { reason, text: 'spec.endpoints is empty', fix: 'list at least one endpoint' };
}

/** With the manifest of a MeshTailnet, to apply as it is where the control API of the domain is known. */
export function tailnetNotFound(domain: string, controlURL: string | undefined): Problem {
  const url =
    defaultControlURL(domain) ??
    '"" # write the address of its control API, such as https://headscale.example.com';
  const fix = `correct spec.tailnet of this object, or apply one, with the OAuth client of the tailnet in Secret ${OAUTH_SECRET} in the namespace of the operator:
apiVersion: ${API_VERSION}
kind: MeshTailnet
metadata:
  name: ${createdTailnetName(domain)}
spec:
  tailnet: ${domain}
${controlURL === undefined ? `  controlURL: ${url}\n` : ''}`;
  return { reason: 'TailnetNotFound', text: `no MeshTailnet has spec.tailnet ${domain}`, fix };
}

const CREDENTIAL_REASONS: readonly string[] = [
  'SecretNotFound',
  'SecretKeyMissing',
  'CredentialsInvalid',
  'ScopeMissing',
];

/** Mesh pods need the control API; proxies that others run carry traffic without it. */
function credentialsProblem({ metadata, spec, status }: Kinds['MeshTailnet']): Problem | undefined {
  if (spec.pool.mode !== 'Managed') return undefined;
  const { status: is, reason = '', message } = findCondition(status?.conditions, 'Authenticated') ?? {};
  if (is !== 'False' || !CREDENTIAL_REASONS.includes(reason)) return undefined;
  const text = `MeshTailnet ${metadata.name} has no valid credentials (${reason}): ${message}`;
  return { reason: 'CredentialsInvalid', text };
}

function noneHealthy(entries: readonly EndpointStatus[], tailnet: Kinds['MeshTailnet']): Problem {
  const reasons = entries.map(({ name, error = 'unhealthy' }) => `${name}: ${error}`);
  const isWaiting = entries.some(({ reason }) => reason === 'NotCheckedYet');
  const text = `no endpoint is healthy: ${firstOf(reasons)}`;
  if (!isWaiting || !poolProblemOf(tailnet)) return { reason: 'NoHealthyEndpoints', text };
  const pool = `MeshTailnet ${tailnet.metadata.name} cannot carry checks`;
  return { reason: 'NoHealthyEndpoints', text: `${text}; ${pool}`, fix: 'see its condition PoolReady' };
}

const MAX_LISTED = 3;

function firstOf(texts: readonly string[]): string {
  const more = texts.length - MAX_LISTED;
  const listed = texts.slice(0, MAX_LISTED).join('; ');
  return more > 0 ? `${listed} (and ${more} more: see status.endpoints)` : listed;
}
