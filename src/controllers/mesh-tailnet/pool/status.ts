import type { ConditionUpdate } from '../../../api/conditions.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { ControlError } from '../../../control/control.ts';
import { RELAY } from '../../../api/names.ts';
import type { ResourceOf } from '../../../api/objects/resource.ts';
import { cutText } from '../../../api/text.ts';
import type { Input } from './gather.ts';
import { joinFailureOf } from './join-failure.ts';
import { keyWaitMs } from './key-history.ts';
import { keyProblemOf, scopeProblemOf } from './key-problem.ts';
import { hasExpired, isReady } from './mesh-pods.ts';
import type { MeshPod } from './mesh-pods.ts';
import type { FailedAction } from './perform.ts';

type MeshTailnet = Kinds['MeshTailnet'];
type ContainerStatus = NonNullable<ResourceOf<'Pod'>['status']['container']>;
type PoolStatus = NonNullable<NonNullable<MeshTailnet['status']>['pool']>;

/** The closed list of reasons why a pool is not ready, the most helpful one first. */
export const POOL_REASONS = [
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
] as const;

export type PoolProblem = {
  readonly reason: (typeof POOL_REASONS)[number];
  /** With the way out. */
  readonly message: string;
};

/** Why an action failed: it is repeated, and what the pods show may be of more help. */
export function problemOf({ action, error }: FailedAction, spec: MeshTailnet['spec']): PoolProblem {
  const { message } = error;
  if (!(error instanceof ControlError)) {
    return { reason: 'Starting', message: `the operator cannot change the pool: ${message}` };
  }
  const problem = action.do === 'create-key' ? keyProblemOf(error, spec) : scopeProblemOf(error, spec);
  return problem ?? { reason: 'Starting', message: `the control API cannot be used (${message})` };
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

function meshPodStatusOf({ name, hostname, secret, device }: MeshPod, { missing }: Input) {
  const addresses = secret && secret.ips.length > 0 ? secret.ips : (device?.addresses ?? []);
  const meshIP = addresses.find(address => !address.includes(':')) ?? addresses[0];
  return {
    pod: name,
    hostname,
    ...(meshIP === undefined ? {} : { meshIP: meshIP.slice(0, 45) }),
    ...(secret?.fqdn === undefined ? {} : { fqdn: secret.fqdn.slice(0, 253) }),
    ...(device && missing.get(name)?.confirmed !== 'removed' ? { online: device.isOnline } : {}),
  };
}

const MAX_MESSAGE_LENGTH = 2000;

/** Whether all mesh pods carry traffic; `failure` is why the last action failed. */
export function poolConditionOf(
  tailnet: MeshTailnet,
  input: Input,
  failure: PoolProblem | undefined,
): ConditionUpdate {
  const { desired } = input;
  const kept = input.meshPods.slice(0, desired);
  const ready = kept.filter(meshPod => carriesTraffic(meshPod, input)).length;
  const problems = kept.flatMap(meshPod => meshPodProblem(tailnet, meshPod, input) ?? []);
  const [worst] = [...(failure ? [failure] : []), ...problems].sort(
    (one, other) => POOL_REASONS.indexOf(one.reason) - POOL_REASONS.indexOf(other.reason),
  );
  const count = `${ready} of ${desired} mesh pods are ready`;
  if (!worst) {
    const message = [count, ...kept.flatMap(meshPod => meshdProblem(meshPod, input))].join('; ');
    return {
      type: 'PoolReady',
      status: 'True',
      reason: 'PoolReady',
      message: cutText(message, MAX_MESSAGE_LENGTH),
    };
  }
  return {
    type: 'PoolReady',
    status: 'False',
    reason: worst.reason,
    message: cutText(`${count}; ${worst.message}`, MAX_MESSAGE_LENGTH),
  };
}

/** A mesh pod may carry traffic by direct paths where it reaches no relay. */
function meshdProblem({ name }: MeshPod, { meshd }: Input): readonly string[] {
  const { hasRelay = true, problems = 0 } = meshd.get(name) ?? {};
  if (!hasRelay) {
    return [
      `${name} reaches no relay (DERP) of the tailnet, so only devices on a direct path: check its log, and that the relay can be reached from the cluster`,
    ];
  }
  if (problems === 0) return [];
  return [
    `meshd of ${name} reports problems (${problems}), such as a relay (DERP) or control server that it cannot reach: see its log`,
  ];
}

function meshPodProblem(tailnet: MeshTailnet, meshPod: MeshPod, input: Input): PoolProblem | undefined {
  if (carriesTraffic(meshPod, input)) return undefined;
  const { isAuthenticated, missing, replaced, keys, now } = input;
  const { name, hostname, secret, hasForeignSecret, pod, device } = meshPod;
  const problem = (reason: PoolProblem['reason'], message: string): PoolProblem => ({ reason, message });
  if (hasForeignSecret) {
    const fix = 'delete that Secret, or give the MeshTailnet another name';
    return problem('Starting', `a Secret ${name} exists that is not of a mesh pod: ${fix}`);
  }
  if (device && !device.isAuthorized) {
    const fix = `approve the device ${hostname} in the admin console of the tailnet`;
    return problem('AwaitingApproval', `${name} has joined and waits: ${fix}`);
  }
  if (missing.get(name)?.confirmed === 'removed') {
    const fix = 'it gets another one; to have fewer mesh pods, change spec.pool.replicas';
    return problem('DeviceRemoved', `the device ${hostname} was removed from the tailnet: ${fix}`);
  }
  if (device && hasExpired(device, now)) {
    const fix =
      'it logs in again with a new join key, or else joins as a new device; turn off key expiry for tagged devices';
    return problem('KeyExpired', `the node key of ${hostname} has expired: ${fix}`);
  }
  if (secret?.hasKey && joinFailureOf(pod) === 'refused') {
    const minutes = Math.round(keyWaitMs(keys.get(name) ?? { count: 0 }) / 60_000);
    const when = minutes === 0 ? 'it gets another one' : `the next one follows ${minutes} min after the last`;
    return problem('KeyRejected', `the control server does not accept the join key of ${name}: ${when}`);
  }
  const podFault = pod && podProblem(pod);
  if (podFault) return podFault;
  if (!secret && !isAuthenticated) {
    return problem('NotAuthenticated', `${name} needs a join key: see the condition Authenticated`);
  }
  const inLists = missing.get(name)?.inLists;
  // One that was never listed may just have joined.
  const isLoggedOut = inLists !== undefined && inLists !== 'unlisted';
  const message = startingMessage(tailnet, meshPod, isLoggedOut);
  return replaced.has(name)
    ? problem('DeviceRemoved', `the device ${hostname} was removed from the tailnet: ${message}`)
    : problem('Starting', message);
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

function podProblem({ metadata: { name }, status }: ResourceOf<'Pod'>): PoolProblem | undefined {
  const { unschedulable, container, relay } = status;
  if (unschedulable !== undefined) {
    const message = `no node can run ${name} (${lineOf(unschedulable)}): check resources, nodeSelector and tolerations of spec.pool`;
    return { reason: 'NotScheduled', message };
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
): PoolProblem | undefined {
  if (isContainerReady) return undefined;
  if (waiting && PULL_REASONS.includes(waiting.reason)) {
    const message = `the image of ${name} cannot be pulled (${lineOf(waiting.message)}): check ${image}`;
    return { reason: 'ImagePull', message };
  }
  if (waiting?.reason === 'CrashLoopBackOff' || (lastTerminated && restarts >= RESTARTS)) {
    const last = lastTerminated ? ` (${lineOf(lastTerminated.message)})` : '';
    return { reason: 'CrashLoop', message: `${name} ends again and again${last}: see its log` };
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
