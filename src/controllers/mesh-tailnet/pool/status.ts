import type { ConditionUpdate } from '../../../api/conditions.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { ControlError } from '../../../control/control.ts';
import { RELAY } from '../../../api/names.ts';
import { conditionOf, formatProblem } from '../../../api/problem.ts';
import type { ProblemAt } from '../../../api/problem.ts';
import type { Reason } from '../../../api/reasons.ts';
import type { ResourceOf } from '../../../api/objects/resource.ts';
import { cutText } from '../../../api/text.ts';
import type { Input } from './gather.ts';
import { joinFailureOf } from './join-failure.ts';
import { keyWaitMs } from './key-history.ts';
import { keyProblemOf, scopeProblemOf } from './key-problem.ts';
import { hasExpired, isReady } from './mesh-pods.ts';
import type { MeshPod } from './mesh-pods.ts';
import type { FailedAction } from './perform.ts';

type Problem = ProblemAt<'MeshTailnet PoolReady'>;

type MeshTailnet = Kinds['MeshTailnet'];
type ContainerStatus = NonNullable<ResourceOf<'Pod'>['status']['container']>;
type PoolStatus = NonNullable<NonNullable<MeshTailnet['status']>['pool']>;

/** The most helpful reason first. */
const HELPFUL_FIRST: readonly Reason[] = [
  'AwaitingApproval',
  'DeviceRemoved',
  'KeyRejected',
  'LimitReached',
  'KeyExpired',
  'NotScheduled',
  'ImagePull',
  'CrashLoop',
  'NotAuthenticated',
  'NoAddresses',
  'Starting',
  'RelayUnreachable',
  'HealthWarnings',
];

function helpfulFirst(one: Problem, other: Problem): number {
  return HELPFUL_FIRST.indexOf(one.reason) - HELPFUL_FIRST.indexOf(other.reason);
}

/** Why an action failed: it is repeated, and what the pods show may be of more help. */
export function problemOf({ action, error }: FailedAction, spec: MeshTailnet['spec']): Problem {
  const { message } = error;
  if (!(error instanceof ControlError)) {
    return { reason: 'Starting', text: `the operator cannot change the pool: ${message}` };
  }
  const problem = action.do === 'create-key' ? keyProblemOf(error, spec) : scopeProblemOf(error, spec);
  return problem ?? { reason: 'Starting', text: `the control API cannot be used (${message})` };
}

/**
 * The part of the status that shows the mesh pods. It has the address of their Service, which Envoy takes from it, once one of
 * them is ready: a connection to a Service that kube-proxy does not know yet hangs until its timeout, and health checks fail. An
 * address that was published stays while none is ready, because open connections of Envoy may still work.
 */
export function poolStatusOf(input: Input, published: string | undefined): PoolStatus {
  const { desired, meshPods, proxyAddress } = input;
  const ready = meshPods.filter(meshPod => carriesTraffic(meshPod, input)).length;
  const isPublished = desired > 0 && (ready > 0 || proxyAddress === published);
  return {
    desired,
    ready,
    ...(isPublished && proxyAddress !== undefined && { proxyAddress }),
    members: meshPods
      .filter(({ secret, pod }) => secret ?? pod)
      .map(meshPod => meshPodStatusOf(meshPod, input)),
  };
}

/** A mesh pod whose device was removed may be ready, and its connections hang. */
function carriesTraffic(meshPod: MeshPod, { missing }: Input): boolean {
  return isReady(meshPod) && missing.get(meshPod.name)?.confirmed !== 'removed';
}

function meshPodStatusOf(meshPod: MeshPod, { missing }: Input) {
  const { name, hostname, secret, device } = meshPod;
  const addresses = secret && secret.ips.length > 0 ? secret.ips : (device?.addresses ?? []);
  const meshIP = addresses.find(address => !address.includes(':')) ?? addresses[0];
  const isRemoved = missing.get(name)?.confirmed === 'removed';
  // Headscale lists all as offline for a while after its restart.
  const isShown = device && !isRemoved && (device.isOnline || !isReady(meshPod));
  return {
    pod: name,
    hostname,
    ...(meshIP === undefined ? {} : { meshIP: meshIP.slice(0, 45) }),
    ...(secret?.fqdn === undefined ? {} : { fqdn: secret.fqdn.slice(0, 253) }),
    ...(isShown ? { online: device.isOnline } : {}),
  };
}

/** Whether all mesh pods carry traffic; `failure` is why the last action failed. */
export function poolConditionOf(
  tailnet: MeshTailnet,
  input: Input,
  failure: Problem | undefined,
): ConditionUpdate {
  const { desired } = input;
  const kept = input.meshPods.slice(0, desired);
  const ready = kept.filter(meshPod => carriesTraffic(meshPod, input)).length;
  const problems = kept.flatMap(meshPod => meshPodProblem(tailnet, meshPod, input) ?? []);
  const [worst] = [...(failure ? [failure] : []), ...problems].sort(helpfulFirst);
  const count = `${ready} of ${desired} mesh pods are ready`;
  const warnings = kept.flatMap(meshPod => meshdProblem(meshPod, input) ?? []);
  const { reason = 'PoolReady' } = warnings.toSorted(helpfulFirst)[0] ?? {};
  const counted = worst && { ...worst, text: `${count}; ${worst.text}` };
  const message = [count, ...warnings.map(formatProblem)].join('; ');
  return conditionOf('MeshTailnet PoolReady', [counted], { reason, message });
}

/** A mesh pod may carry traffic by direct paths where it reaches no relay. */
function meshdProblem({ name }: MeshPod, { meshd }: Input): Problem | undefined {
  const { hasRelay = true, problems = 0 } = meshd.get(name) ?? {};
  if (!hasRelay) {
    return {
      reason: 'RelayUnreachable',
      text: `${name} reaches no relay (DERP) of the tailnet, so only devices on a direct path`,
      fix: 'check its log, and that the relay can be reached from the cluster',
    };
  }
  if (problems === 0) return undefined;
  const text = `meshd of ${name} reports problems (${problems}), such as a relay (DERP) or control server that it cannot reach`;
  return { reason: 'HealthWarnings', text, fix: 'see its log' };
}

function meshPodProblem(tailnet: MeshTailnet, meshPod: MeshPod, input: Input): Problem | undefined {
  if (carriesTraffic(meshPod, input)) return undefined;
  const { isAuthenticated, missing, replaced, keys, now } = input;
  const { name, hostname, secret, hasForeignSecret, pod, device } = meshPod;
  if (hasForeignSecret) {
    const fix = 'delete that Secret, or give the MeshTailnet another name';
    return { reason: 'Starting', text: `a Secret ${name} exists that is not of a mesh pod`, fix };
  }
  if (device && !device.isAuthorized) {
    const fix = `approve the device ${hostname} in the admin console of the tailnet`;
    return { reason: 'AwaitingApproval', text: `${name} has joined and waits`, fix };
  }
  const removed = {
    reason: 'DeviceRemoved',
    text: `the device ${hostname} was removed from the tailnet`,
  } as const;
  if (missing.get(name)?.confirmed === 'removed')
    return { ...removed, fix: 'it gets another one; to have fewer mesh pods, change spec.pool.replicas' };
  if (device && hasExpired(device, now)) {
    const fix =
      'it logs in again with a new join key, or else joins as a new device; turn off key expiry for tagged devices';
    return { reason: 'KeyExpired', text: `the node key of ${hostname} has expired`, fix };
  }
  if (secret?.hasKey && joinFailureOf(pod) === 'refused') {
    const minutes = Math.round(keyWaitMs(keys.get(name) ?? { count: 0 }) / 60_000);
    const fix = minutes === 0 ? 'it gets another one' : `the next one follows ${minutes} min after the last`;
    return { reason: 'KeyRejected', text: `the control server does not accept the join key of ${name}`, fix };
  }
  // One that is being deleted is replaced, whatever it ends with.
  const podFault = pod?.metadata.deletionTimestamp === undefined && pod && podProblem(pod);
  if (podFault) return podFault;
  if (!secret && !isAuthenticated) {
    const fix = 'see the condition Authenticated';
    return { reason: 'NotAuthenticated', text: `${name} needs a join key`, fix };
  }
  const inLists = missing.get(name)?.inLists;
  // One that was never listed may just have joined.
  const isLoggedOut = inLists !== undefined && inLists !== 'unlisted';
  const text = startingMessage(tailnet, meshPod, isLoggedOut);
  if (replaced.has(name)) return { ...removed, fix: text };
  const wasRefused = secret?.hasKey === true && keys.get(name)?.isRefused === true;
  const refused = `the control server did not accept the join key of ${name}`;
  return wasRefused
    ? { reason: 'KeyRejected', text: refused, fix: `it has got another one; ${text}` }
    : { reason: 'Starting', text };
}

function startingMessage(
  { spec }: MeshTailnet,
  { name, hostname, secret, pod }: MeshPod,
  isLoggedOut: boolean,
): string {
  const isReplaced = spec.pool.replicas === 1 && secret?.deviceId !== undefined;
  const pause = isReplaced
    ? ': it is the only one, so traffic pauses until it is ready; spec.pool.replicas: 2 avoids that'
    : '';
  if (!secret) return `${name} waits for a join key${pause}`;
  if (!pod) return `${name} is not running yet${pause}`;
  if (isLoggedOut) return `${name} waits to log in again: ${hostname} is not logged in${pause}`;
  const { container, relay } = pod.status;
  const isRelayLast = container?.isReady === true && relay?.isReady === false;
  return `${isRelayLast ? `the container ${RELAY.container} of ${name}` : name} is starting${pause}`;
}

const PULL_REASONS: readonly string[] = [
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
];

function podProblem({ metadata: { name }, status }: ResourceOf<'Pod'>): Problem | undefined {
  const { unschedulable, container, relay } = status;
  if (unschedulable !== undefined) {
    const fix = 'check resources, nodeSelector and tolerations of spec.pool';
    return { reason: 'NotScheduled', text: `no node can run ${name} (${lineOf(unschedulable)})`, fix };
  }
  const meshd = container && containerProblem(name, container, 'spec.pool.image');
  const ofRelay = `the container ${RELAY.container} of ${name}`;
  return meshd ?? (relay && containerProblem(ofRelay, relay, 'RELAY_IMAGE of the operator'));
}

/** Why a container does not run; `image` is where its image is set. */
function containerProblem(
  name: string,
  { isReady: isContainerReady, waiting, lastTerminated, restarts }: ContainerStatus,
  image: string,
): Problem | undefined {
  if (isContainerReady) return undefined;
  if (waiting && PULL_REASONS.includes(waiting.reason)) {
    const text = `the image of ${name} cannot be pulled (${lineOf(waiting.message)})`;
    return { reason: 'ImagePull', text, fix: `check ${image}` };
  }
  if (waiting?.reason === 'CrashLoopBackOff' || (lastTerminated && restarts >= RESTARTS)) {
    const last = lastTerminated ? ` (${lineOf(lastTerminated.message)})` : '';
    return { reason: 'CrashLoop', text: `${name} ends again and again${last}`, fix: 'see its log' };
  }
  return undefined;
}

/** After this number of restarts a pod that is not ready counts as crashing. */
const RESTARTS = 3;

/** The last line of a message, without what may be a secret: it may come from a log. */
function lineOf(message: string): string {
  const lines = message.split('\n').filter(line => line.trim() !== '');
  return cutText((lines.at(-1) ?? '').replace(/\S*(?:key-|secret)\S*|\S{48,}/gi, '[redacted]'), 300);
}
