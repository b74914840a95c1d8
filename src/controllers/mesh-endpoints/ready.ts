import { findCondition } from '../../api/conditions.ts';
import type { ConditionUpdate } from '../../api/conditions.ts';
import { API_VERSION } from '../../api/generated/kinds.ts';
import type { EndpointStatus, EndpointSummary, Kinds } from '../../api/generated/types.ts';
import { createdTailnetName, defaultControlURL, OAUTH_SECRET } from '../../api/names.ts';
import { cutText } from '../../api/text.ts';
import { poolProblemOf } from '../../traffic/data-path.ts';
import { reasonOf } from '../../traffic/endpoints/health-status.ts';
import type { PlannedEndpoint } from './plan.ts';

/** The closed list of reasons why a MeshEndpoints is not ready. */
export type NotReadyReason =
  | 'Paused'
  | 'TailnetNotFound'
  | 'NamespaceNotAllowed'
  | 'CredentialsInvalid'
  | 'InvalidReference'
  | 'NoEndpoints'
  | 'NoHealthyEndpoints';

const MAX_MESSAGE_LENGTH = 2048;

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
export function readyOf({
  object,
  tailnet,
  controlURL,
  isAllowed,
  planned,
  entries,
  summary,
  discovered,
}: ReadyInput): ConditionUpdate {
  if (!tailnet) return notReady('TailnetNotFound', tailnetNotFound(object.spec.tailnet, controlURL));
  const { name } = tailnet.metadata;
  if (!isAllowed) return notReady('NamespaceNotAllowed', namespaceNotAllowed(name, object));
  const credentials = credentialsProblem(tailnet);
  if (credentials !== undefined) return notReady('CredentialsInvalid', credentials);
  const references = planned.flatMap(({ endpoint, inputs }) => {
    const problem = inputs.problem ?? inputs.checkProblem ?? inputs.outdated;
    return problem === undefined ? [] : [`endpoint ${endpoint.name}: ${problem}`];
  });
  if (references.length > 0) return notReady('InvalidReference', firstOf(references));
  const unread = planned.some(({ inputs }) => inputs.isCheckPending === true) && writtenProblem(object);
  if (unread) return notReady('InvalidReference', unread);
  if (planned.length === 0) return notReady('NoEndpoints', noEndpoints(discovered));
  if (summary.healthy === 0) return notReady('NoHealthyEndpoints', noneHealthy(entries, tailnet));
  const message = `${summary.ready} endpoints are healthy or not checked`;
  return { type: 'Ready', status: 'True', reason: 'EndpointsConfigured', message };
}

/** What an earlier process has found wrong with the references of the present spec, which this one has yet to read. */
function writtenProblem({ metadata, status }: Kinds['MeshEndpoints']): string | undefined {
  const before = findCondition(status?.conditions, 'Ready');
  const isCurrent = before?.observedGeneration === metadata.generation;
  return isCurrent && before?.reason === 'InvalidReference' ? before.message : undefined;
}

function notReady(reason: NotReadyReason, message: string): ConditionUpdate {
  return { type: 'Ready', status: 'False', reason, message: cutText(message, MAX_MESSAGE_LENGTH) };
}

/** The condition Ready of a paused object. */
export const PAUSED: ConditionUpdate = notReady(
  'Paused',
  'spec.paused is true: nothing is checked, and the rest of this status stays as it is. Set it to false to continue',
);

function noEndpoints(discovered: ConditionUpdate | undefined): string {
  if (!discovered) return 'spec.endpoints is empty: list at least one endpoint';
  return `spec.tagSelectors finds no endpoints: ${discovered.message}`;
}

/** With the manifest of a MeshTailnet, to apply as it is where the control API of the domain is known. */
export function tailnetNotFound(domain: string, controlURL: string | undefined): string {
  const url =
    defaultControlURL(domain) ??
    '"" # write the address of its control API, such as https://headscale.example.com';
  return `no MeshTailnet has spec.tailnet ${domain}: correct spec.tailnet of this object, or apply one, with the OAuth client of the tailnet in Secret ${OAUTH_SECRET} in the namespace of the operator:
apiVersion: ${API_VERSION}
kind: MeshTailnet
metadata:
  name: ${createdTailnetName(domain)}
spec:
  tailnet: ${domain}
${controlURL === undefined ? `  controlURL: ${url}\n` : ''}`;
}

function namespaceNotAllowed(tailnet: string, { metadata }: Kinds['MeshEndpoints']): string {
  return `spec.allowedNamespaces of MeshTailnet ${tailnet} does not select namespace ${metadata.namespace ?? ''}: add the labels that it selects to the namespace, or change the selector`;
}

const CREDENTIAL_REASONS: readonly string[] = [
  'SecretNotFound',
  'SecretKeyMissing',
  'CredentialsInvalid',
  'ScopeMissing',
];

/** Mesh pods need the control API; proxies that others run carry traffic without it. */
function credentialsProblem({ metadata, spec, status }: Kinds['MeshTailnet']): string | undefined {
  if (spec.pool.mode !== 'Managed') return undefined;
  const condition = findCondition(status?.conditions, 'Authenticated');
  if (condition?.status !== 'False' || !CREDENTIAL_REASONS.includes(condition.reason)) return undefined;
  return `MeshTailnet ${metadata.name} has no valid credentials: ${condition.reason}: ${condition.message}`;
}

function noneHealthy(entries: readonly EndpointStatus[], tailnet: Kinds['MeshTailnet']): string {
  const reasons = entries.map(({ name, error = 'unhealthy' }) => `${name}: ${error}`);
  const isWaiting = entries.some(entry => reasonOf(entry) === 'NotCheckedYet');
  const pool =
    isWaiting && poolProblemOf(tailnet) !== undefined
      ? `; MeshTailnet ${tailnet.metadata.name} cannot carry checks: see its condition PoolReady`
      : '';
  return `no endpoint is healthy: ${firstOf(reasons)}${pool}`;
}

const MAX_LISTED = 3;

function firstOf(texts: readonly string[]): string {
  const more = texts.length - MAX_LISTED;
  const listed = texts.slice(0, MAX_LISTED).join('; ');
  return more > 0 ? `${listed} (and ${more} more: see status.endpoints)` : listed;
}
