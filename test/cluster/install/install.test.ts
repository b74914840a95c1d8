import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GROUP } from '../../../src/api/generated/kinds.ts';
import type { OperatorAccess, ProcessAccess } from '../../../src/api/access.ts';
import { COMPONENTS, ENVOY_POD } from '../../../src/api/names.ts';
import { NETWORK } from '../../../lab/cluster/network.ts';
import { KubeError } from '../../../lab/kube/error.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { documentedCommands } from '../../../lab/install/installer.ts';
import { podsWith } from '../../../lab/kube/pods.ts';
import { withPodPort } from '../../../lab/cluster/port-forward.ts';
import { requestThrough } from '../../../lab/gateway/envoy.ts';
import { until } from '../../../lab/process/wait.ts';
import { operatorAccess } from '../../../src/controllers/registry.ts';
import { extensionServerAccess } from '../../../src/traffic/access.ts';
import { tokenOf } from '../../support/cluster/account.ts';
import { connectionsSeen } from '../../support/cluster/install/connections.ts';
import { isAllowed } from '../../support/cluster/install/policies.ts';
import type { Call, PolicyPod } from '../../support/cluster/install/policies.ts';
import {
  FORBIDDEN_TO_ENVOY_GATEWAY,
  FORBIDDEN_TO_READERS,
  forbiddenToAll,
  mayDo,
  NEEDED_BY_ENVOY_GATEWAY,
  rightsIn,
  wordsOf,
} from '../../support/cluster/install/rights.ts';
import type { Right } from '../../support/cluster/install/rights.ts';
import { meshRoute } from '../../support/cluster/install/mesh.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { waitForReplicas } from '../../support/cluster/install/replicas.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { isInstalled } from '../../support/cluster/install/shared.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { restrictedPod } from '../../support/cluster/objects.ts';
import { runInPod } from '../../support/cluster/run-pod.ts';
import { named } from '../../support/declared.ts';
import { meshBinding, meshEndpoints, meshTailnet } from '../../support/objects.ts';
import { contractMetrics } from '../../contract-checklist/metric-names.ts';

const { operator, extensionServer } = COMPONENTS;
const OWN = PLACE.system;

let scene: InstallScene;
const start = performance.now();
const steps: string[] = [];
const note = (what: string) => steps.push(`${((performance.now() - start) / 1000).toFixed(1)} s  ${what}`);
beforeAll(async () => {
  expect(isInstalled(), 'the installation of other files is not tested here').toBe(false);
  scene = await installScene({ onStep: note });
});
afterAll(async () => {
  await scene.end();
});

describe('an installation by the documentation', () => {
  it('carries a request through Envoy and the tailnet', async () => {
    printLogsOnFailure(scene.client, scene.namespace, OWN);
    expect(steps.length).toBeGreaterThan(3);
    await scene.use();
    await scene.answerOf('web-1');
    note('the first 200 through the tailnet');
    const [[wait = ''] = []] = documentedCommands('install.md', 'The first endpoint');
    expect(await scene.shell.sh(wait.replace('kubectl', `kubectl -n ${scene.namespace}`))).toContain(
      'condition met',
    );
    console.log(['from nothing:', ...steps].join('\n'));
    expect((await scene.request('other.example.com')).status).toBe(404);
  });

  it('runs two pods of each process, although only the autoscaler sets the number', async () => {
    printLogsOnFailure(scene.client, OWN);
    for (const name of [operator, extensionServer]) await waitForReplicas(scene.client, name, 2);
    const pods = await scene.client.list({ apiVersion: 'v1', kind: 'Pod', namespace: OWN });
    const restarts = pods.flatMap(
      ({ status }) =>
        (status as { readonly containerStatuses: readonly { readonly restartCount: number }[] })
          .containerStatuses,
    );
    expect(restarts.map(({ restartCount }) => restartCount)).toEqual([0, 0, 0, 0]);
  });

  it('is equal to what was applied', async () => {
    expect(await scene.shell.sh('kubectl diff --server-side -k manifests')).toBe('');
  });
});

describe('while routes are made and edited', () => {
  const route = (name: string, hosts: number): KubeObject =>
    meshRoute(
      testCluster(),
      'web-1',
      `${scene.namespace}/${name}`,
      Array.from({ length: hosts }, (_, at) => `${name}-${at}.example.com`),
    );

  it('Envoy Gateway calls no hook but Translation, and no wait for a revision times out', async () => {
    printLogsOnFailure(scene.client, scene.namespace, OWN);
    for (const name of ['first', 'second', 'third']) {
      for (const hosts of [1, 2]) {
        await scene.client.apply(route(name, hosts));
        await scene.answerOf('web-1', `${name}-${hosts - 1}.example.com`);
      }
    }
    const lines = await extensionServerMetrics();
    const sumOf = (series: RegExp) =>
      lines.filter(line => series.test(line)).reduce((sum, line) => sum + Number(line.split(' ')[1]), 0);
    expect(sumOf(/^grpc_server_requests_total\{.*PostTranslateModify/)).toBeGreaterThanOrEqual(6);
    expect(sumOf(/^grpc_server_requests_total\{.*Post(?!TranslateModify)/)).toBe(0);
    const timeouts = lines.filter(line => /^mesh_gateway_revision_waits_total\{.*timeout/.test(line));
    expect(timeouts.map(line => line.split(' ')[1])).toEqual(['0', '0']);
    expect(sumOf(/^grpc_server_request_duration_seconds_count\{.*PostTranslateModify/)).toBeGreaterThan(0);
    const ofContract = contractMetrics().filter(({ group }) => group === 'Extension server');
    expect(ofContract.length).toBeGreaterThan(0);
    expect(ofContract.filter(({ name }) => !lines.some(line => line.startsWith(`# TYPE ${name} `)))).toEqual(
      [],
    );
  });

  /** The metrics of both pods, line by line. */
  async function extensionServerMetrics(): Promise<readonly string[]> {
    const pods = await podsWith(scene.client, OWN, { 'app.kubernetes.io/name': extensionServer });
    const pages = pods.map(({ metadata: { name = '' } }) =>
      withPodPort(testCluster(), { namespace: OWN, pod: name, port: 8080 }, async address => {
        const { body } = await requestThrough(address, { host: address, path: '/metrics' });
        return body;
      }),
    );
    return (await Promise.all(pages)).flatMap(page => page.split('\n'));
  }
});

describe('the namespace of an installation', () => {
  it('refuses a pod that allows privilege escalation', async () => {
    const pod = restrictedPod(OWN, 'privileged', { image: 'node', securityContext: { privileged: true } });
    await expect(scene.client.create(pod, { dryRun: 'All' })).rejects.toThrow(
      /violates PodSecurity "restricted/,
    );
  });

  it('admits all of our pods', async () => {
    const events = await scene.client.list({ apiVersion: 'v1', kind: 'Event', namespace: OWN });
    const messages = events.map(({ message }) => String(message)).filter(each => each.includes('forbidden'));
    // The node may mount a token before the API server has noticed that the pod is on it; it tries again.
    expect(messages.filter(each => !each.includes('no relationship found between node'))).toEqual([]);
  });
});

/** The rights of a list that an account has, as texts. */
async function heldBy(namespace: string, name: string, rights: readonly Right[]): Promise<readonly string[]> {
  const account = scene.client.withToken(await tokenOf(scene.client, { namespace, name }));
  const held = await Promise.all(
    rights.map(async right => ((await mayDo(account, right)) ? [wordsOf(right)] : [])),
  );
  return held.flat();
}

describe('the account of', () => {
  const needed = ({ cluster, own, unused, proxies = [] }: ProcessAccess & Partial<OperatorAccess>) => [
    ...rightsIn([...cluster, ...unused], ''),
    ...rightsIn(own, OWN),
    ...rightsIn(proxies, ENVOY_POD.namespace),
  ];
  const EVERYBODY = forbiddenToAll(OWN);
  it.each([
    [operator, OWN, needed(operatorAccess), EVERYBODY],
    [extensionServer, OWN, needed(extensionServerAccess), [...EVERYBODY, ...FORBIDDEN_TO_READERS]],
    ['envoy-gateway', 'envoy-gateway-system', NEEDED_BY_ENVOY_GATEWAY, FORBIDDEN_TO_ENVOY_GATEWAY],
  ])('%s may do what it needs, and nothing that is forbidden', async (name, namespace, may, mayNot) => {
    expect(may.length * mayNot.length).toBeGreaterThan(0);
    expect(await heldBy(namespace, name, may)).toEqual(may.map(wordsOf));
    expect(await heldBy(namespace, name, mayNot)).toEqual([]);
  });
});

describe('a user with the role of a namespace', () => {
  /** A user who has a role of Kubernetes in the namespace of the scene. */
  async function userWith(role: string) {
    const { client, namespace } = scene;
    const metadata = { namespace, name: `user-${role}` };
    await client.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata });
    await client.apply({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
    });
    const user = client.withToken(await tokenOf(client, metadata));
    // The API server applies a new binding after a moment; each of the roles may at least read.
    const mayRead = async () => await mayDo(user, ['list', GROUP, 'meshendpoints', namespace]);
    await until(`${role} to hold`, mayRead);
    return user;
  }

  const OBJECTS = { MeshEndpoints: meshEndpoints(), MeshBinding: meshBinding(), MeshTailnet: meshTailnet() };

  /** The result of creating an object of each of our kinds. */
  async function makesAs(role: string): Promise<unknown> {
    const user = await userWith(role);
    const entries = Object.entries(OBJECTS).map(async ([kind, object]) => {
      const named_ = named(object, `${scene.namespace}/of-${role}`) as KubeObject;
      const made = await user.create(named_, { dryRun: 'All' }).then(
        () => 'made',
        (error: unknown) => (error as KubeError).status,
      );
      return [kind, made] as const;
    });
    return Object.fromEntries(await Promise.all(entries));
  }

  it.each([
    ['edit', { MeshEndpoints: 'made', MeshBinding: 403, MeshTailnet: 403 }],
    ['admin', { MeshEndpoints: 'made', MeshBinding: 403, MeshTailnet: 403 }],
    ['view', { MeshEndpoints: 403, MeshBinding: 403, MeshTailnet: 403 }],
  ])('%s may make %j', async (role, expected) => {
    expect(await makesAs(role)).toEqual(expected);
  });

  it('view may read them', async () => {
    const user = await userWith('view');
    const type = {
      apiVersion: 'mesh-gateway.dev/v1alpha1',
      kind: 'MeshEndpoints',
      namespace: scene.namespace,
    };
    expect((await user.list(type)).map(({ metadata }) => metadata.name)).toEqual(['web']);
  });
});

describe('the network policies', () => {
  const policies = () =>
    scene.client.list({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', namespace: OWN });

  /** Every pod, by its address. */
  async function podsByAddress(): Promise<ReadonlyMap<string, PolicyPod>> {
    const pods = await scene.client.list({ apiVersion: 'v1', kind: 'Pod' });
    return new Map(
      pods.map(({ metadata: { namespace = '', labels = {} }, status }) => [
        (status as { readonly podIP?: string }).podIP ?? '',
        { namespace, labels },
      ]),
    );
  }

  const nameOf = ({ namespace, labels }: PolicyPod) =>
    `${namespace}/${labels['app.kubernetes.io/name'] ?? labels['app'] ?? ''}`;
  const wordsOfCall = ({ from, to, port }: Call) => `${nameOf(from)} -> ${nameOf(to)}:${port}`;

  /** The current connections to our pods, without the probes of the node. */
  async function callsSeen(): Promise<readonly Call[]> {
    const pods = await podsByAddress();
    return connectionsSeen()
      .filter(({ from }) => from !== NETWORK.bridgeAddress)
      .flatMap(({ from, to, port }) => {
        const callee = pods.get(to);
        const caller = pods.get(from) ?? { namespace: `outside ${from}`, labels: {} };
        return callee?.namespace === OWN ? [{ from: caller, to: callee, port }] : [];
      });
  }

  it('allow every connection that an installation in use has', async () => {
    const seen = await until('Envoy and Envoy Gateway to be seen at the extension server', async note => {
      const calls = await callsSeen();
      const words = [...new Set(calls.map(wordsOfCall))].sort();
      note(words.join(', '));
      const callers = calls.filter(({ port }) => port === 5005).map(({ from }) => nameOf(from));
      return new Set(callers).size > 1 ? calls : undefined;
    });
    console.log(`connections seen: ${[...new Set(seen.map(wordsOfCall))].join(', ')}`);
    const inForce = await policies();
    expect(seen.filter(call => !isAllowed(inForce, call)).map(wordsOfCall)).toEqual([]);
  });

  it('allow nothing else: neither others at these ports, nor these at others', async () => {
    const inForce = await policies();
    const calls = await callsSeen();
    const foreign: PolicyPod = { namespace: scene.namespace, labels: {} };
    const strangers = calls.map(call => ({ ...call, from: { ...call.from, namespace: scene.namespace } }));
    const elsewhere = calls.flatMap(call => [8080, 8081, 1055].map(port => ({ ...call, port })));
    const toAll = [5005, 8080, 8081].flatMap(port => calls.map(({ to }) => ({ from: foreign, to, port })));
    const all = [...strangers, ...elsewhere, ...toAll];
    expect(all).not.toEqual([]);
    expect(all.filter(call => isAllowed(inForce, call)).map(wordsOfCall)).toEqual([]);
  });

  it('are not enforced by the network plugin of this cluster, so other pods can connect', async () => {
    const service = `${extensionServer}.${OWN}.svc.cluster.local`;
    const script = `import { connect } from 'node:net';
      connect(5005, '${service}').on('connect', () => { console.log('let in'); process.exit(0); });`;
    expect((await runInPod(scene.client, scene.namespace, script)).trim()).toBe('let in');
  });
});
