import { inSeconds } from '../../api/clock.ts';
import { conditionsOf, findCondition } from '../../api/conditions.ts';
import type { ConditionUpdate } from '../../api/conditions.ts';
import { isEqual } from '../../api/json.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { conditionOf, formatProblem } from '../../api/problem.ts';
import type { ProblemAt } from '../../api/problem.ts';
import { cutText } from '../../api/text.ts';
import { authenticatedOf, conflictWith } from './authenticated.ts';
import { enforcedOf } from './enforcement/condition.ts';
import type { Finding } from './enforcement/verdict.ts';
import type { Input } from './gather.ts';
import { proxiesOf } from '../../traffic/data-path.ts';
import { scopeProblemOf } from './pool/key-problem.ts';
import { SKIP_CLEANUP } from '../../api/names.ts';
import type { ReconciledPool } from './pool/reconcile.ts';
import { ControlError, domainsOf } from '../../control/control.ts';
import type { Device, TailnetView } from '../../control/control.ts';

type MeshTailnet = Kinds['MeshTailnet'];
type Status = NonNullable<MeshTailnet['status']>;

/** Everything that decides the status of a MeshTailnet. */
type StatusInput = Input & {
  /** The mesh pods; undefined where the operator runs none for this MeshTailnet. */
  readonly pool: ReconciledPool | undefined;
  /** Whether NetworkPolicies protect the mesh pods; undefined without a cluster. */
  readonly policies: Finding | undefined;
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
  const policies = input.olderName === undefined ? enforcedOf(input.tailnet, input.policies) : undefined;
  return [
    readyOf(input, authenticated, pool),
    authenticated,
    ...(pool ? [pool] : []),
    ...(services ? [services] : []),
    ...(policies ? [policies] : []),
    ...(pool && input.pool?.front ? [input.pool.front] : []),
  ];
}

const SERVICES = 'ServiceDiscoverySupported';

/** As before while it is not known, which is so after each start; undefined where it never was. */
function servicesOf({ tailnet, view }: StatusInput): ConditionUpdate | undefined {
  const hasServices = view?.hasServices;
  if (hasServices === undefined) return findCondition(tailnet.status?.conditions, SERVICES);
  const message = 'the control server has VIP services';
  return conditionOf('MeshTailnet ServiceDiscoverySupported', [hasServices ? undefined : NO_SERVICES], {
    reason: SERVICES,
    message,
  });
}

const NO_SERVICES: ProblemAt<'MeshTailnet ServiceDiscoverySupported'> = {
  reason: 'NotSupported',
  text: 'the control server has no VIP services, as headscale has none: MeshEndpoints of this tailnet cannot be published as such',
};

/** Undefined where it does not matter whether there is a pool. */
function poolReadyOf({ tailnet, olderName, pool }: StatusInput): ConditionUpdate | undefined {
  if (olderName !== undefined || tailnet.metadata.deletionTimestamp !== undefined) return undefined;
  const isManaged = tailnet.spec.pool.mode === 'Managed';
  if (pool && isManaged) return pool.condition;
  const without = isManaged ? WITHOUT_CLUSTER : proxiesOf(tailnet).are === 'names' ? ONLY_NAMES : undefined;
  const message = 'traffic passes through the proxies of spec.pool.addresses';
  return conditionOf('MeshTailnet PoolReady', [without], { reason: 'PoolReady', message });
}

const WITHOUT_CLUSTER: ProblemAt<'MeshTailnet PoolReady'> = {
  reason: 'NoAddresses',
  text: 'mesh pods need a cluster',
  fix: 'run a proxy into the tailnet, and set spec.pool to mode External with its address',
};

const ONLY_NAMES: ProblemAt<'MeshTailnet PoolReady'> = {
  reason: 'NoAddresses',
  text: 'no host of spec.pool.addresses is an IP address',
  fix: 'Envoy resolves no names, so give IP addresses',
};

/** Proxies that others run carry traffic without a control API. */
function readyOf(
  input: StatusInput,
  authenticated: ConditionUpdate,
  poolReady: ConditionUpdate | undefined,
): ConditionUpdate {
  const { pool } = input.tailnet.spec;
  const isAlone = pool.mode === 'External' && authenticated.reason === 'ControlURLMissing';
  const problem =
    lifecycleProblem(input) ?? (isAlone ? undefined : unusable(input, authenticated, poolReady));
  const message = isAlone
    ? 'traffic passes through the proxies of spec.pool.addresses; no control API is configured'
    : 'the control API accepts the credentials, and there is a pool to carry traffic';
  return conditionOf('MeshTailnet Ready', [problem], { reason: 'TailnetReady', message });
}

function lifecycleProblem(input: StatusInput): ProblemAt<'MeshTailnet Ready'> | undefined {
  const { tailnet, olderName } = input;
  if (tailnet.metadata.deletionTimestamp !== undefined)
    return { reason: 'Deleting', text: deletingMessage(input) };
  return olderName === undefined
    ? undefined
    : { reason: 'Conflict', ...conflictWith(tailnet.spec.tailnet, olderName) };
}

function unusable(
  { tailnet, pool }: StatusInput,
  authenticated: ConditionUpdate,
  poolReady: ConditionUpdate | undefined,
): ProblemAt<'MeshTailnet Ready'> | undefined {
  if (authenticated.status !== 'True') return { reason: 'NotAuthenticated', text: authenticated.message };
  const isManaged = tailnet.spec.pool.mode === 'Managed';
  const isCarrying = isManaged ? (pool?.status?.ready ?? 0) > 0 : poolReady?.status === 'True';
  return isCarrying ? undefined : { reason: 'PoolNotReady', text: poolReady?.message ?? '' };
}

function deletingMessage({ tailnet, pool }: StatusInput): string {
  if (!pool) return 'the object is being deleted, and waits for the finalizers of others';
  const online = `; still online are ${pool.waitsFor.join(', ')}: what is after 3 minutes is left in the tailnet, because another cluster may use it`;
  const problem = pool.error instanceof ControlError ? scopeProblemOf(pool.error, tailnet.spec) : undefined;
  const error = problem ? formatProblem(problem) : pool.error?.message;
  const waits = error === undefined ? (pool.waitsFor.length > 0 ? online : '') : `: ${error}`;
  return `the mesh pods and their devices are being removed${waits}; if the control API never comes back, set the annotation ${SKIP_CLEANUP}: "true", and remove the devices by hand`;
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
      ...(error ? { lastError: cutText(error.message, 1024) } : {}),
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
