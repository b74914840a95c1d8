import { at, listAt } from './parts.ts';
import { ofContainers, ofPods } from './policy.ts';
import type { Policy } from './policy.ts';

/** The maximum time from SIGTERM to the end of the process. */
const DRAIN_SECONDS = 25;

/** The policies of every pod. */
export const podPolicies: readonly Policy[] = [
  ofPods(
    'no pod runs as root',
    pod =>
      at(pod, 'securityContext', 'runAsNonRoot') === true &&
      Number(at(pod, 'securityContext', 'runAsUser')) > 0 &&
      Number(at(pod, 'securityContext', 'runAsGroup')) > 0,
    [['securityContext', 'runAsUser'], 0],
  ),
  ofPods(
    'every pod has the usual seccomp profile',
    pod => at(pod, 'securityContext', 'seccompProfile', 'type') === 'RuntimeDefault',
    [['securityContext', 'seccompProfile']],
  ),
  ofPods(
    'no pod uses the network, the processes or the files of its node',
    pod =>
      ['hostNetwork', 'hostPID', 'hostIPC'].every(name => at(pod, name) === undefined) &&
      listAt(pod, 'volumes').every(volume => at(volume, 'hostPath') === undefined),
    [['volumes'], [{ name: 'root', hostPath: { path: '/' } }]],
  ),
  ofPods(
    'every pod has a ServiceAccount of its own, and mounts its token',
    (pod, { metadata }) =>
      at(pod, 'serviceAccountName') === metadata.name && at(pod, 'automountServiceAccountToken') === true,
    [['serviceAccountName'], 'default'],
  ),
  ofPods(
    'pods of one Deployment are spread over nodes, and run where there are few',
    pod =>
      listAt(pod, 'topologySpreadConstraints').some(
        spread =>
          at(spread, 'topologyKey') === 'kubernetes.io/hostname' &&
          at(spread, 'whenUnsatisfiable') === 'ScheduleAnyway',
      ),
    [['topologySpreadConstraints']],
  ),
  ofPods(
    'the grace period of a pod is longer than its preStop wait and the shutdown of its process',
    pod => {
      const waits = listAt(pod, 'containers').some(one => at(one, 'lifecycle', 'preStop')) ? 5 : 0;
      return Number(at(pod, 'terminationGracePeriodSeconds')) >= DRAIN_SECONDS + waits;
    },
    [['terminationGracePeriodSeconds'], 20],
  ),
];

/** The policies of every container. */
export const containerPolicies: readonly Policy[] = [
  ofContainers(
    'no container may gain privileges',
    one =>
      at(one, 'securityContext', 'allowPrivilegeEscalation') === false &&
      at(one, 'securityContext', 'privileged') === undefined,
    [['securityContext', 'allowPrivilegeEscalation']],
  ),
  ofContainers(
    'no container has a capability',
    one =>
      listAt(one, 'securityContext', 'capabilities', 'drop').join() === 'ALL' &&
      at(one, 'securityContext', 'capabilities', 'add') === undefined,
    [['securityContext', 'capabilities', 'add'], ['NET_ADMIN']],
  ),
  ofContainers(
    'no container may write to its image',
    one => at(one, 'securityContext', 'readOnlyRootFilesystem') === true,
    [['securityContext', 'readOnlyRootFilesystem'], false],
  ),
  ofContainers(
    'every container has requests and limits of CPU and memory',
    one =>
      ['requests', 'limits'].every(amounts =>
        ['cpu', 'memory'].every(resource => at(one, 'resources', amounts, resource) !== undefined),
      ),
    [['resources', 'limits', 'memory']],
  ),
  ofContainers(
    'every container has a liveness and a readiness probe, which differ',
    one => {
      const probes = ['livenessProbe', 'readinessProbe'].map(
        probe => JSON.stringify(at(one, probe)) as unknown,
      );
      return !probes.includes(undefined) && probes[0] !== probes[1];
    },
    [['readinessProbe']],
  ),
  ofContainers(
    'no container is restarted because of something outside of it',
    one => at(one, 'livenessProbe', 'httpGet', 'path') === '/healthz',
    [['livenessProbe', 'httpGet', 'path'], '/readyz'],
  ),
  ofContainers(
    'every image has a tag or a digest, and not the one that moves',
    one => /(:(?!latest$)\w[\w.-]*|@sha256:[0-9a-f]{64})$/.test(String(at(one, 'image'))),
    [['image'], 'mesh-gateway:latest'],
  ),
  ofContainers(
    'no variable holds a secret',
    one =>
      listAt(one, 'env').every(
        variable =>
          // The value of this one is names of Secrets.
          !/SECRET|TOKEN|PASSWORD/.test(String(at(variable, 'name')).replace('IMAGE_PULL_SECRETS', '')) &&
          at(variable, 'valueFrom', 'secretKeyRef') === undefined,
      ),
    [['env', 0, 'name'], 'CLIENT_SECRET'],
  ),
];
