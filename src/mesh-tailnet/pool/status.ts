import type { Finding } from '../../api/conditions.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { RELAY } from '../../api/names.ts';
import type { ResourceOf } from '../../api/objects/resource.ts';
import { isKeyRejected, isPast, isReady } from './members.ts';
import type { Member } from './members.ts';
import type { PoolSituation } from './plan.ts';

type MeshTailnet = Kinds['MeshTailnet'];
type ContainerStatus = NonNullable<ResourceOf<'Pod'>['status']['container']>;
type PoolStatus = NonNullable<NonNullable<MeshTailnet['status']>['pool']>;

/** The closed list of reasons why a pool is not ready, the most helpful one first. */
export const POOL_REASONS = [
  'AwaitingApproval',
  'KeyRejected',
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

/** The part of the status that shows the mesh pods. */
export function poolStatusOf(
  { desired, members }: PoolSituation,
  proxyAddress: string | undefined,
): PoolStatus {
  return {
    desired,
    ready: members.filter(isReady).length,
    ...(proxyAddress === undefined || desired === 0 ? {} : { proxyAddress }),
    members: members.filter(({ secret, pod }) => secret ?? pod).map(memberStatusOf),
  };
}

function memberStatusOf({ name, hostname, secret, device }: Member) {
  const addresses = secret && secret.ips.length > 0 ? secret.ips : (device?.addresses ?? []);
  const meshIP = addresses.find(address => !address.includes(':')) ?? addresses[0];
  return {
    pod: name,
    hostname,
    ...(meshIP === undefined ? {} : { meshIP: meshIP.slice(0, 45) }),
    ...(secret?.fqdn === undefined ? {} : { fqdn: secret.fqdn.slice(0, 253) }),
    ...(device ? { online: device.isOnline } : {}),
  };
}

/** Whether all mesh pods carry traffic; `failure` is why the last step failed. */
export function poolFinding(
  tailnet: MeshTailnet,
  situation: PoolSituation,
  failure: PoolProblem | undefined,
): Finding {
  const { desired } = situation;
  const kept = situation.members.slice(0, desired);
  const ready = kept.filter(isReady).length;
  const problems = kept.flatMap(member => memberProblem(tailnet, member, situation) ?? []);
  const [worst] = [...(failure ? [failure] : []), ...problems].sort(
    (one, other) => POOL_REASONS.indexOf(one.reason) - POOL_REASONS.indexOf(other.reason),
  );
  const count = `${ready} of ${desired} mesh pods are ready`;
  if (!worst) return { type: 'PoolReady', status: 'True', reason: 'PoolReady', message: count };
  return {
    type: 'PoolReady',
    status: 'False',
    reason: worst.reason,
    message: `${count}; ${worst.message}`.slice(0, 2000),
  };
}

function memberProblem(
  tailnet: MeshTailnet,
  member: Member,
  { isAuthenticated, now }: PoolSituation,
): PoolProblem | undefined {
  if (isReady(member)) return undefined;
  const { name, hostname, secret, hasForeignSecret, pod, device } = member;
  const problem = (reason: PoolProblem['reason'], message: string): PoolProblem => ({ reason, message });
  if (hasForeignSecret) {
    const fix = 'delete that Secret, or give the MeshTailnet another name';
    return problem('Starting', `a Secret ${name} exists that is not of a mesh pod: ${fix}`);
  }
  if (device && !device.isAuthorized) {
    const fix = `approve the device ${hostname} in the admin console of the tailnet`;
    return problem('AwaitingApproval', `${name} has joined and waits: ${fix}`);
  }
  if (secret?.hasKey && isKeyRejected(pod)) {
    return problem(
      'KeyRejected',
      `the control server does not accept the join key of ${name}; it gets another one`,
    );
  }
  if (device?.expires !== undefined && isPast(new Date(device.expires), now)) {
    const fix = 'it logs in again with a new join key; turn off key expiry for tagged devices';
    return problem('KeyExpired', `the node key of ${hostname} has expired: ${fix}`);
  }
  const podFault = pod && podProblem(pod);
  if (podFault) return podFault;
  if (!secret && !isAuthenticated) {
    return problem('NotAuthenticated', `${name} needs a join key: see the condition Authenticated`);
  }
  return problem('Starting', startingMessage(tailnet, member));
}

function startingMessage({ spec }: MeshTailnet, { name, secret, pod }: Member): string {
  const isReplaced = spec.pool.replicas === 1 && secret?.deviceId !== undefined;
  const pause = isReplaced
    ? ': it is the only one, so traffic pauses until it is ready; spec.pool.replicas: 2 avoids that'
    : '';
  if (!secret) return `${name} waits for a join key${pause}`;
  if (!pod) return `${name} is not running yet${pause}`;
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
  return (lines.at(-1) ?? '').replace(/\S*(?:key-|secret)\S*|\S{48,}/gi, '[redacted]').slice(0, 300);
}
