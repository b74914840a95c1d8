import { inSeconds } from '../../api/clock.ts';
import { conditionsOf, findCondition } from '../../api/conditions.ts';
import type { ConditionUpdate } from '../../api/conditions.ts';
import { isEqual } from '../../api/json.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { isClearText } from './clear-text.ts';
import type { AuthenticationProblem } from './connection.ts';
import type { Input } from './gather.ts';
import { proxiesOf } from '../../traffic/data-path.ts';
import { scopeProblemOf, scopesFix } from './pool/key-problem.ts';
import { SKIP_CLEANUP } from '../../api/names.ts';
import { hasFinalizer } from './pool/mesh-pods.ts';
import type { ReconciledPool } from './pool/reconcile.ts';
import { ControlError, domainsOf, otherDomainOf } from '../../control/control.ts';
import type { Device, TailnetView } from '../../control/control.ts';

type MeshTailnet = Kinds['MeshTailnet'];
type Status = NonNullable<MeshTailnet['status']>;

/** Everything that decides the status of a MeshTailnet. */
type StatusInput = Input & {
  /** The mesh pods; undefined where the operator runs none for this MeshTailnet. */
  readonly pool: ReconciledPool | undefined;
};

/** The status that a MeshTailnet should have; the stored one if nothing but the time of the last success differs. */
export function statusOf(input: StatusInput): Status {
  const { tailnet, view, secretVersion, now } = input;
  const { metadata, status: before } = tailnet;
  const observed = { generation: metadata.generation, now };
  const status: Status = {
    ...(metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }),
    conditions: conditionsOf(updatesOf(input), before?.conditions, observed),
    ...tailnetInfoOf(view),
    ...(input.pool?.status ? { pool: input.pool.status } : {}),
    ...(view?.devices ? { devices: { ...countsOf(view.devices), ...input.pool?.devices } } : {}),
    ...apiOf(view),
    ...credentialOf(view, secretVersion),
  };
  const hasFailed = status.api?.lastError !== undefined || input.pool?.error !== undefined;
  return before && isEqual(stable(before, hasFailed), stable(status, hasFailed)) ? before : status;
}

/** What is worth a write. A server may put the id of the request into each error. */
function stable({ api, vipServices: _services, conditions = [], ...rest }: Status, hasFailed: boolean) {
  const { lastSuccess: _time, lastError, ...others } = api ?? {};
  if (!hasFailed) return { ...rest, conditions, api: { ...others, lastError } };
  const messages = conditions.map(condition => ({ ...condition, message: withoutIds(condition.message) }));
  const error = lastError === undefined ? undefined : withoutIds(lastError);
  return { ...rest, conditions: messages, api: { ...others, lastError: error } };
}

/** Without words that have digits, except the HTTP status after the request. */
function withoutIds(message: string): string {
  return message.replace(/(?<![\w-])(?!(?<=: )\d{3}(?![\w-]))[\w-]*\d[\w-]*/g, '#');
}

function updatesOf(input: StatusInput): readonly ConditionUpdate[] {
  const authenticated = authenticatedOf(input);
  const pool = poolReadyOf(input);
  const services = servicesOf(input);
  return [
    readyOf(input, authenticated, pool),
    authenticated,
    ...(pool ? [pool] : []),
    ...(services ? [services] : []),
  ];
}

const SERVICES = 'ServiceDiscoverySupported';

/** As before while it is not known, which is so after each start; undefined where it never was. */
function servicesOf({ tailnet, view }: StatusInput): ConditionUpdate | undefined {
  switch (view?.hasServices) {
    case undefined:
      return findCondition(tailnet.status?.conditions, SERVICES);
    case true:
      return {
        type: SERVICES,
        status: 'True',
        reason: SERVICES,
        message: 'the control server has VIP services',
      };
    case false: {
      const message =
        'the control server has no VIP services, as headscale has none: MeshEndpoints of this tailnet cannot be published as such';
      return { type: SERVICES, status: 'False', reason: 'NotSupported', message };
    }
  }
}

/** Undefined where it does not matter whether there is a pool. */
function poolReadyOf({ tailnet, olderName, pool }: StatusInput): ConditionUpdate | undefined {
  if (olderName !== undefined || tailnet.metadata.deletionTimestamp !== undefined) return undefined;
  if (pool && tailnet.spec.pool.mode === 'Managed') return pool.condition;
  const no = (message: string): ConditionUpdate => ({
    type: 'PoolReady',
    status: 'False',
    reason: 'NoAddresses',
    message,
  });
  if (tailnet.spec.pool.mode === 'Managed') {
    return no(
      'mesh pods need a cluster: run a proxy into the tailnet, and set spec.pool to mode External with its address',
    );
  }
  if (proxiesOf(tailnet).are === 'names') {
    return no(
      'no host of spec.pool.addresses is an IP address: Envoy resolves no names, so give IP addresses',
    );
  }
  const message = 'traffic passes through the proxies of spec.pool.addresses';
  return { type: 'PoolReady', status: 'True', reason: 'PoolReady', message };
}

/** The closed list of reasons why a tailnet is not ready. */
export const NOT_READY_REASONS = ['Deleting', 'Conflict', 'NotAuthenticated', 'PoolNotReady'] as const;

function readyOf(
  input: StatusInput,
  authenticated: ConditionUpdate,
  poolReady: ConditionUpdate | undefined,
): ConditionUpdate {
  const { tailnet, olderName, pool } = input;
  const { metadata, spec } = tailnet;
  const no = (reason: (typeof NOT_READY_REASONS)[number], message: string): ConditionUpdate => ({
    type: 'Ready',
    status: 'False',
    reason,
    message,
  });
  if (metadata.deletionTimestamp !== undefined) return no('Deleting', deletingMessage(input));
  if (olderName !== undefined) return no('Conflict', conflictWith(spec.tailnet, olderName));
  if (spec.pool.mode === 'External' && authenticated.reason === 'ControlURLMissing') {
    const message = 'traffic passes through the proxies of spec.pool.addresses; no control API is configured';
    return { type: 'Ready', status: 'True', reason: 'TailnetReady', message };
  }
  if (authenticated.status !== 'True') return no('NotAuthenticated', authenticated.message);
  const isCarrying =
    spec.pool.mode === 'Managed' ? (pool?.status?.ready ?? 0) > 0 : poolReady?.status === 'True';
  if (!isCarrying) return no('PoolNotReady', poolReady?.message ?? '');
  const message = 'the control API accepts the credentials, and there is a pool to carry traffic';
  return { type: 'Ready', status: 'True', reason: 'TailnetReady', message };
}

function deletingMessage({ tailnet, pool }: StatusInput): string {
  if (!pool) return 'the object is being deleted, and waits for the finalizers of others';
  const online = `; still online are ${pool.waitsFor.join(', ')}: what is after 3 minutes is left in the tailnet, because another cluster may use it`;
  const problem = pool.error instanceof ControlError ? scopeProblemOf(pool.error, tailnet.spec) : undefined;
  const error = problem?.message ?? pool.error?.message;
  const waits = error === undefined ? (pool.waitsFor.length > 0 ? online : '') : `: ${error}`;
  return `the mesh pods and their devices are being removed${waits}; if the control API never comes back, set the annotation ${SKIP_CLEANUP}: "true", and remove the devices by hand`;
}

function conflictWith(domain: string, olderName: string): string {
  return `MeshTailnet ${olderName} is older and has the tailnet ${domain} already: delete one of the two`;
}

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
  if (problem) return notAuthenticated({ ...problem, message: cut(problem.message) + clearText });
  const spaces =
    trimmed.length === 0
      ? ''
      : `; white space around ${trimmed.join(' and ')} was ignored: store the value without it`;
  const message = `the control API lists devices with the credentials of ${origin}${spaces}${clearText}`;
  return { type: 'Authenticated', status: 'True', reason: 'Authenticated', message };
}

function notAuthenticated({ reason, message }: AuthenticationProblem): ConditionUpdate {
  return { type: 'Authenticated', status: 'False', reason, message: cut(message) };
}

function cut(message: string): string {
  return message.slice(0, 2000);
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

function tailnetInfoOf(view: TailnetView | undefined): Pick<Status, 'tailnetInfo'> {
  const suffix = domainsOf(view?.devices ?? [])[0]?.slice(0, 253);
  return suffix === undefined ? {} : { tailnetInfo: { name: suffix, magicDNSSuffix: suffix } };
}

function countsOf(devices: readonly Device[]): NonNullable<Status['devices']> {
  return { total: devices.length, online: devices.filter(({ isOnline }) => isOnline).length };
}

function apiOf(view: TailnetView | undefined): Pick<Status, 'api'> {
  if (!view) return {};
  const { lastSuccess, error } = view;
  return {
    api: {
      ...(lastSuccess ? { lastSuccess: inSeconds(lastSuccess) } : {}),
      ...(error ? { lastError: error.message.slice(0, 1024) } : {}),
      ...(error?.reason === 'Throttled' ? { throttled: true } : {}),
    },
  };
}

function credentialOf(
  view: TailnetView | undefined,
  secretVersion: string | undefined,
): Pick<Status, 'credential'> {
  const token = view?.token;
  if (!token && secretVersion === undefined) return {};
  return {
    credential: {
      ...(secretVersion === undefined ? {} : { secretVersion }),
      ...(token ? { expiresAt: inSeconds(token.expiresAt), scopes: scopesOf(token) } : {}),
    },
  };
}

/** As many and as long as a status may have them. */
function scopesOf({ scopes }: NonNullable<TailnetView['token']>): readonly string[] {
  return scopes.slice(0, 32).map(scope => scope.slice(0, 128));
}
