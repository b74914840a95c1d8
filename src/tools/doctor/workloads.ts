import { COMPONENTS } from '../../api/names.ts';
import type { Fields } from '../../api/json.ts';
import { at, failed, listAt, nameOf, namedIn, notChecked, numberAt, ok, textAt } from './observed.ts';
import type { Line, Observed, Reading } from './observed.ts';

/** Whether the processes run, with their images, quotas and clocks. */
export function checkWorkloads(observed: Observed): readonly Line[] {
  const { deployments, namespace, pods, envoyGatewayPods, envoys } = observed;
  return [
    deploymentLine('operator', COMPONENTS.operator, deployments, namespace),
    deploymentLine('extension-server', COMPONENTS.extensionServer, deployments, namespace),
    ...podLines([pods, envoyGatewayPods, envoys]),
    ...quotaLines(observed),
    leaderLine(observed),
    clockLine(observed),
  ];
}

const APPLY = 'kubectl apply --server-side -k manifests';

function deploymentLine(check: string, name: string, { items, why }: Reading, namespace: string): Line {
  if (!items) return notChecked(check, why);
  const deployment = namedIn(items, name);
  const what = `Deployment ${namespace}/${name}`;
  if (!deployment) return failed(check, `${what} does not exist`, APPLY);
  const desired = numberAt(deployment, 'spec', 'replicas');
  if (desired === 0) {
    const fix = `kubectl -n ${namespace} scale deployment/${name} --replicas=2`;
    return failed(check, `${what} has spec.replicas: 0`, fix);
  }
  const available = numberAt(deployment, 'status', 'availableReplicas');
  const [container] = containersOf(deployment);
  const text = `${available} of ${desired} pods of ${what} are available`;
  return available > 0
    ? ok(check, `${text}, with image ${textAt(container, 'image')}`)
    : failed(check, text, `kubectl -n ${namespace} describe pods -l app.kubernetes.io/name=${name}`);
}

/** The containers in the pod template of a workload. */
export function containersOf(workload: Fields | undefined): readonly Fields[] {
  return listAt(workload, 'spec', 'template', 'spec', 'containers');
}

/** The value of an environment variable in the Deployment of a component. */
export function variableOf(
  { items = [] }: Reading,
  component: (typeof COMPONENTS)[keyof typeof COMPONENTS],
  name: string,
): string | undefined {
  const variables = containersOf(namedIn(items, component)).flatMap(each => listAt(each, 'env'));
  const value = variables.find(variable => variable['name'] === name)?.['value'];
  return typeof value === 'string' ? value : undefined;
}

const PULL_REASONS: readonly string[] = [
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'ImageInspectError',
  'RegistryUnavailable',
];

/** How a pod does not run; the text of the container's own end may hold anything, and is not shown. */
type PodProblem = { readonly check: 'images' | 'pods'; readonly text: string; readonly fix: string };

/** The pods of a reading that failed are not checked, and others are. */
function podLines(readings: readonly Reading[]): readonly Line[] {
  const pods = new Map(readings.flatMap(({ items = [] }) => items).map(pod => [nameOf(pod), pod] as const));
  const problems = [...pods.values()].flatMap(problemsOf);
  const unread = readings.flatMap(({ why }) => (why === undefined ? [] : [why]));
  return (['images', 'pods'] as const).flatMap(check => {
    const found = problems.filter(problem => problem.check === check);
    const lines = found.map(({ text, fix }) => failed(check, text, fix));
    const holes = unread.map(why => notChecked(check, why));
    if (lines.length + holes.length > 0) return [...lines, ...holes];
    const text =
      check === 'images' ? 'no pod waits for an image' : `none of ${pods.size} pods crashes, or has no node`;
    return [ok(check, text)];
  });
}

const RESTARTS = 3;

function problemsOf(pod: Fields): readonly PodProblem[] {
  if (at(pod, 'metadata', 'deletionTimestamp') !== undefined) return [];
  const [namespace, name] = [textAt(pod, 'metadata', 'namespace'), textAt(pod, 'metadata', 'name')];
  const what = `pod ${nameOf(pod)}`;
  const scheduled = listAt(pod, 'status', 'conditions').find(({ type }) => type === 'PodScheduled');
  if (scheduled?.['reason'] === 'Unschedulable') {
    const fix = 'correct its resources, nodeSelector or tolerations, or add a node';
    return [{ check: 'pods', text: `no node can run ${what}: ${textAt(scheduled, 'message')}`, fix }];
  }
  const statuses = [
    ...listAt(pod, 'status', 'initContainerStatuses'),
    ...listAt(pod, 'status', 'containerStatuses'),
  ];
  return statuses.flatMap((status): readonly PodProblem[] => {
    const waiting = textAt(status, 'state', 'waiting', 'reason');
    const container = `container ${textAt(status, 'name')} of ${what}`;
    if (PULL_REASONS.includes(waiting)) {
      const text = `${container} cannot get its image ${textAt(status, 'image')} (${waiting})`;
      return [{ check: 'images', text, fix: IMAGE_FIX }];
    }
    const restarts = numberAt(status, 'restartCount');
    const isCrashing = waiting === 'CrashLoopBackOff' || (status['ready'] !== true && restarts >= RESTARTS);
    if (!isCrashing && waiting !== 'CreateContainerConfigError') return [];
    const last = textAt(status, 'lastState', 'terminated', 'reason') || waiting;
    const text = `${container} does not stay up: ${last}, ${restarts} restarts`;
    const fix =
      last === 'OOMKilled'
        ? MEMORY_FIX
        : `kubectl -n ${namespace} logs ${name} -c ${textAt(status, 'name')} --previous`;
    return [{ check: 'pods', text, fix }];
  });
}

const MEMORY_FIX =
  'raise resources.limits.memory of operator, extensionServer or meshPods in the configuration of mesh-gateway synth';

const IMAGE_FIX =
  'push the image to the registry, or correct image of the configuration of mesh-gateway synth, or spec.pool.image of the MeshTailnet';

/** Pods that a quota, or anything else, does not let be created. */
function quotaLines({ namespace, quotas, deployments, statefulSets, refusals }: Observed): readonly Line[] {
  const check = 'quotas';
  if (!quotas.items) return [notChecked(check, quotas.why)];
  const names = quotas.items.map(quota => textAt(quota, 'metadata', 'name'));
  const refused = [...refusedBy(deployments), ...refusedStatefulSets(statefulSets, refusals)];
  const lines = refused.map(({ what, message }) => {
    const quota = names.find(name => message.includes(`exceeded quota: ${name},`));
    return quota === undefined
      ? failed(check, `pods of ${what} cannot be created: ${message}`)
      : failed(
          check,
          `ResourceQuota ${namespace}/${quota} does not let pods of ${what} be created: ${message}`,
          `kubectl -n ${namespace} edit resourcequota ${quota}`,
        );
  });
  if (lines.length > 0) return lines;
  const unread = [deployments, statefulSets, refusals].find(({ why }) => why !== undefined);
  if (names.length > 0 && unread?.why !== undefined) return [notChecked(check, unread.why)];
  const text =
    names.length === 0
      ? `namespace ${namespace} has no ResourceQuota`
      : `${names.length} ResourceQuotas of namespace ${namespace} refuse no pod`;
  return [ok(check, text)];
}

type Refused = { readonly what: string; readonly message: string };

function refusedBy({ items = [] }: Reading): readonly Refused[] {
  return items.flatMap(deployment => {
    const failure = listAt(deployment, 'status', 'conditions').find(
      ({ type, status }) => type === 'ReplicaFailure' && status === 'True',
    );
    return failure ? [{ what: `Deployment ${nameOf(deployment)}`, message: textAt(failure, 'message') }] : [];
  });
}

/** A StatefulSet has no condition for it, and Events stay for an hour. */
function refusedStatefulSets({ items = [] }: Reading, refusals: Reading): readonly Refused[] {
  return items
    .filter(each => numberAt(each, 'status', 'replicas') < numberAt(each, 'spec', 'replicas'))
    .flatMap(statefulSet => {
      const name = textAt(statefulSet, 'metadata', 'name');
      const event = (refusals.items ?? []).find(
        each =>
          textAt(each, 'involvedObject', 'kind') === 'StatefulSet' &&
          textAt(each, 'involvedObject', 'name') === name,
      );
      if (!event) return [];
      return [{ what: `StatefulSet ${nameOf(statefulSet)}`, message: textAt(event, 'message') }];
    });
}

/** A busy operator may be late. */
const LEASE_MARGIN_MS = 15_000;

/** Whether an operator leads, without which no status is up to date; undefined where it is not known. */
export function isLed({ lease, now }: Pick<Observed, 'lease' | 'now'>): boolean | undefined {
  const [found] = lease.items ?? [];
  if (lease.why !== undefined) return undefined;
  const renewed = Date.parse(textAt(found, 'spec', 'renewTime'));
  const durationMs = numberAt(found, 'spec', 'leaseDurationSeconds') * 1000;
  return (
    textAt(found, 'spec', 'holderIdentity') !== '' && now.getTime() - renewed < durationMs + LEASE_MARGIN_MS
  );
}

function leaderLine(observed: Observed): Line {
  const check = 'leader';
  const { lease, namespace } = observed;
  if (!lease.items) return notChecked(check, lease.why);
  const [found] = lease.items;
  if (isLed(observed) === true)
    return ok(check, `${textAt(found, 'spec', 'holderIdentity')} leads the operators`);
  const since = textAt(found, 'spec', 'renewTime');
  const text = since === '' ? 'no operator has ever led' : `no operator has led since ${since}`;
  return failed(
    check,
    `${text}, so nothing is reconciled`,
    `kubectl -n ${namespace} logs deployment/${COMPONENTS.operator}`,
  );
}

const MAX_SKEW_MS = 10_000;

/** The operator writes its time into its Lease, and the API server the time at which it stored that. */
function clockLine({ lease }: Observed): Line {
  const check = 'clocks';
  if (!lease.items) return notChecked(check, lease.why);
  const [found] = lease.items;
  const written = Date.parse(textAt(found, 'spec', 'renewTime'));
  const stored = Math.max(
    ...listAt(found, 'metadata', 'managedFields').map(entry => Date.parse(textAt(entry, 'time'))),
  );
  const skewMs = Math.abs(written - stored);
  if (!Number.isFinite(skewMs)) return notChecked(check, 'the Lease of the operator has no times to compare');
  const seconds = Math.round(skewMs / 1000);
  return skewMs <= MAX_SKEW_MS
    ? ok(check, `the operator and the API server agree within ${Math.max(seconds, 1)} s`)
    : failed(
        check,
        `the clocks of the operator and the API server differ by ${seconds} s, so tokens and certificates may be refused`,
        'synchronize the clocks of all nodes, such as by chrony',
      );
}
