import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ClientCredentials } from '../../../lab/control-api/control-api.ts';
import { waitForCondition } from '../../../lab/kube/wait.ts';
import { until } from '../../../lab/process/wait.ts';
import { changeNode, listNodes } from '../../../lab/tailnet/tailnet.ts';
import type { NodeChange } from '../../../lab/tailnet/tailnet.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import { OAUTH_SECRET, poolName } from '../../../src/api/names.ts';
import type { Line } from '../../../src/tools/doctor/observed.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { doctorOn } from '../../support/cluster/run-doctor.ts';
import { remoteEndpoints, startManagedTailnet } from '../../support/cluster/install/mesh.ts';
import type { ManagedTailnet } from '../../support/cluster/install/mesh.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { meshBackend } from '../../support/declared.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import { EXPIRED_CERTIFICATE } from '../../support/traffic/certificates.ts';

const cluster = testCluster();
const OWN = PLACE.system;
const GATEWAY = 'envoy-gateway-system';
const CONFIG = `-n ${GATEWAY} configmap envoy-gateway-config`;

let tailnet: ManagedTailnet;
let oauth: ClientCredentials;
let scene: InstallScene;
/** What fails before anything is broken, such as because of other users of the cluster. */
let before: ReadonlySet<string>;
beforeAll(async () => {
  tailnet = await startManagedTailnet(cluster, { secretName: OAUTH_SECRET });
  oauth = tailnet.client;
  scene = await installScene({ tailnet });
  await storeClient(oauth);
  await scene.use();
  await scene.answerOf('web-1');
  // What fails only until the second mesh pod is ready, too, would never count.
  await waitForCondition(
    scene.client,
    { apiVersion: API_VERSION, kind: 'MeshTailnet', name: scene.namespace },
    'PoolReady',
  );
  before = new Set((await doctor()).map(textOf));
});
afterAll(async () => {
  await scene.end();
});

/** The checks that fail. */
async function doctor(): Promise<readonly Line[]> {
  const { lines, printed } = await doctorOn(cluster);
  expect(printed).not.toContain(oauth.secret);
  return lines.filter(({ is, isPending }) => is === 'failed' || isPending === true);
}

function textOf({ check, text }: Line): string {
  return `${check}: ${text}`;
}

async function newFailures(): Promise<readonly Line[]> {
  return (await doctor()).filter(line => !before.has(textOf(line)));
}

async function storeClient({ id, secret }: ClientCredentials): Promise<void> {
  const metadata = { namespace: OWN, name: OAUTH_SECRET };
  const stringData = { 'client-id': id, 'client-secret': secret };
  await scene.client.apply({ apiVersion: 'v1', kind: 'Secret', metadata, stringData });
}

const sh = (commands: string) => scene.shell.sh(commands);

/** Applies the text of a fix: a manifest, or commands as the doctor prints them. */
async function follow(fix: string): Promise<void> {
  const isManifest = fix.startsWith('apiVersion: ');
  const commands = isManifest ? `kubectl apply -f - <<'END'\n${fix}\nEND\n` : fix;
  await sh(
    `CLIENT_ID='${oauth.id}' CLIENT_SECRET='${oauth.secret}' ENVOY_GATEWAY_CHART=gateway-helm\n${commands}`,
  );
}

const patchTailnet = (spec: object) =>
  sh(`kubectl patch meshtailnet ${scene.namespace} --type=merge --patch='${JSON.stringify({ spec })}'`);

const editConfig = (expression: string) =>
  sh(
    `kubectl get ${CONFIG} --output=json | sed '${expression}' | kubectl replace --filename=- && kubectl get ${CONFIG}`,
  );

/** A route or another object of the user, as a manifest. */
const applyObject = (manifest: object) =>
  sh(`kubectl apply -f - <<'END'\n${JSON.stringify(manifest)}\nEND\n`);

function routeWith(spec: object): object {
  return {
    ...{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute' },
    metadata: { namespace: scene.namespace, name: 'doctor' },
    spec,
  };
}

const removeRoute = () => sh(`kubectl -n ${scene.namespace} delete httproute doctor`);

/** What is broken, how, the check that names it, and how it heals where the fix is no command. */
type Break = {
  readonly what: string;
  readonly by: () => Promise<unknown>;
  readonly check: string;
  readonly heal?: () => Promise<unknown>;
  /** Removes what the fix has left. */
  readonly after?: () => Promise<unknown>;
};

const applyPolicies = () =>
  sh('kubectl apply --server-side --force-conflicts -f manifests/network-policies.yaml');

/** The policies of fixes. */
const removeFixes = async () => {
  await applyPolicies();
  await sh(
    `kubectl -n ${OWN} get networkpolicies --output=name | grep networkpolicy.networking.k8s.io/mesh-ingress- | xargs kubectl -n ${OWN} delete`,
  );
};

const removeFrom = (policy: string, path: string, checked: Readonly<Record<string, number>> = {}) => {
  const operations = [
    ...Object.entries(checked).map(([field, value]) => ({ op: 'test', path: `${path}/${field}`, value })),
    { op: 'remove', path },
  ];
  return sh(
    `kubectl -n ${OWN} patch networkpolicy ${policy} --type=json --patch='${JSON.stringify(operations)}'`,
  );
};

const { admin } = cluster.tailnet;

/** Changes the device of the first mesh pod in the tailnet itself. */
async function changeDevice(change: NodeChange): Promise<void> {
  const first = `${poolName(scene.namespace)}-0-`;
  const device = (await listNodes(admin)).find(({ hostname }) => hostname.startsWith(first));
  if (!device) throw new Error('the first mesh pod has not joined');
  await changeNode(admin, device.id, change);
}

/** A route to MeshEndpoints of another namespace, which does not permit it. */
async function referElsewhere(): Promise<void> {
  elsewhere = await createNamespace(scene.client);
  await scene.client.apply(remoteEndpoints(cluster, 'web-2', `${elsewhere}/web`));
  const { http: port } = remoteOf(cluster, 'web-2').ports;
  const rules = [{ backendRefs: [meshBackend({ name: 'web', namespace: elsewhere, port })] }];
  await applyObject(
    routeWith({ parentRefs: [{ name: 'public' }], hostnames: ['elsewhere.example.com'], rules }),
  );
}

let elsewhere = '';
let raiseLimit = (): void => undefined;

const patchListeners = (operation: object) =>
  sh(
    `kubectl -n ${scene.namespace} patch gateway public --type=json --patch='${JSON.stringify([operation])}'`,
  );

const BREAKS: readonly Break[] = [
  {
    what: 'an old CRD',
    by: () =>
      sh(
        `kubectl patch crd meshendpoints.mesh-gateway.dev --type=json --patch='[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/paused"}]'`,
      ),
    check: 'crds',
  },
  {
    what: 'RBAC of the operator',
    by: () => sh(`kubectl -n ${OWN} delete rolebinding mesh-operator`),
    check: 'rbac-operator',
  },
  {
    what: 'RBAC of the extension server',
    by: () => sh('kubectl delete clusterrolebinding mesh-extension-server.mesh-system'),
    check: 'rbac-extension-server',
  },
  { what: 'the Secret', by: () => sh(`kubectl -n ${OWN} delete secret ${OAUTH_SECRET}`), check: 'secret' },
  {
    what: 'a scope',
    by: () => storeClient(tailnet.api.addClient(['auth_keys'], ['tag:mesh'])),
    check: 'scopes',
    heal: () => storeClient(oauth),
  },
  {
    what: 'a tag',
    by: async () => {
      await storeClient(tailnet.api.addClient(['devices:core', 'auth_keys'], ['tag:other']));
      await patchTailnet({ pool: { replicas: 3 } });
    },
    check: 'tags',
    // With the right tags first, the third mesh pod would get a key, and the next limit would keep nothing out.
    heal: async () => {
      await patchTailnet({ pool: { replicas: 2 } });
      await storeClient(oauth);
    },
  },
  {
    what: 'another tailnet',
    by: () => patchTailnet({ tailnet: 'other.ts.net' }),
    check: 'tailnet',
    heal: () => patchTailnet({ tailnet: 'example.ts.net' }),
  },
  {
    what: 'a limit of the tailnet',
    by: async () => {
      const fault = { is: 'answer', status: 402, json: { message: 'device limit reached' } } as const;
      raiseLimit = tailnet.api.fail({ routes: ['keys.create'], fault });
      await patchTailnet({ pool: { replicas: 3 } });
    },
    check: 'tailnet-limits',
    heal: async () => {
      raiseLimit();
      await patchTailnet({ pool: { replicas: 2 } });
    },
  },
  {
    what: 'an approval',
    by: () => changeDevice('withdraw-approval'),
    check: 'approvals',
    heal: () => changeDevice('approve'),
  },
  {
    what: 'an expired key',
    by: () => changeDevice('expire'),
    check: 'key-expiry',
    // The operator gives the device another join key.
    heal: () => Promise.resolve(),
  },
  {
    what: 'an image',
    by: () => patchTailnet({ pool: { image: 'registry.invalid/tailscale:none' } }),
    check: 'images',
    heal: () => patchTailnet({ pool: { image: null } }),
  },
  {
    what: 'a quota',
    by: async () => {
      await sh(`kubectl -n ${OWN} create quota few --hard=pods=1`);
      await sh(`kubectl -n ${OWN} delete pod --wait=false --ignore-not-found meshd-${scene.namespace}-1`);
    },
    check: 'quotas',
    heal: () => sh(`kubectl -n ${OWN} delete resourcequota few`),
  },
  {
    what: 'a policy that blocks 5005',
    by: () => removeFrom('mesh-extension-server', '/spec/ingress/0'),
    check: 'port-5005',
    after: removeFixes,
  },
  {
    what: 'a policy that blocks 1055',
    by: () => removeFrom('mesh-pods', '/spec/ingress/0'),
    check: 'port-1055',
    after: removeFixes,
  },
  {
    what: 'a policy that blocks 9002',
    // The rule of the operator has port 1055, too, which is a check of its own.
    by: () => removeFrom('mesh-pods', '/spec/ingress/1/ports/1', { port: 9002 }),
    check: 'port-9002',
    after: removeFixes,
  },
  {
    what: 'Envoy Gateway without the hook',
    by: () => editConfig('s/- Translation/- VirtualHost/'),
    check: 'hook',
  },
  { what: 'Envoy Gateway on a wrong port', by: () => editConfig('s/port: 5005/port: 5006/'), check: 'hook' },
  {
    what: 'Envoy Gateway with a small message limit',
    by: () => editConfig('s/maxMessageSize: 100M/maxMessageSize: 4M/'),
    check: 'message-limit',
  },
  {
    what: 'Envoy Gateway that was not restarted',
    by: () => editConfig('s/failOpen: false/failOpen: false # changed/'),
    check: 'restarted',
    after: async () => {
      await editConfig('s/ # changed//');
      await sh(
        `kubectl -n ${GATEWAY} rollout restart deployment/envoy-gateway && kubectl -n ${GATEWAY} rollout status deployment/envoy-gateway`,
      );
    },
  },
  {
    what: 'a listener',
    by: () =>
      applyObject(
        routeWith({
          parentRefs: [{ name: 'public', sectionName: 'none' }],
          rules: [
            { backendRefs: [{ group: 'mesh-gateway.dev', kind: 'MeshEndpoints', name: 'web', port: 80 }] },
          ],
        }),
      ),
    check: 'routes',
    heal: removeRoute,
  },
  {
    what: 'a listener that Envoy Gateway refuses',
    by: () => {
      const tls = { certificateRefs: [{ name: 'none' }] };
      const listener = { name: 'https', port: 443, protocol: 'HTTPS', tls };
      return patchListeners({ op: 'add', path: '/spec/listeners/-', value: listener });
    },
    check: 'listeners',
    heal: () => patchListeners({ op: 'remove', path: '/spec/listeners/1' }),
  },
  {
    what: 'a grant',
    by: referElsewhere,
    check: 'routes',
    after: async () => {
      await removeRoute();
      await removeNamespace(scene.client, elsewhere);
    },
  },
  {
    what: 'DNS',
    // The DNS of this cluster has no pods: one that never starts stands in for them.
    by: () =>
      sh(
        'kubectl -n kube-system run coredns --image=registry.invalid/coredns:none --restart=Never --labels=k8s-app=kube-dns',
      ),
    check: 'dns',
    heal: () => sh('kubectl -n kube-system delete pod coredns --grace-period=1'),
  },
  {
    what: 'a CA',
    by: () => {
      const fields = { meshIP: '100.64.9.9', meshFQDN: 'ca.example.ts.net', port: 443, protocol: 'HTTPS' };
      const endpoints = [{ name: 'ca', ...fields, tls: { ca: EXPIRED_CERTIFICATE } }];
      const metadata = { namespace: scene.namespace, name: 'ca' };
      const spec = { tailnet: 'example.ts.net', endpoints };
      return applyObject({ apiVersion: 'mesh-gateway.dev/v1alpha1', kind: 'MeshEndpoints', metadata, spec });
    },
    check: 'cas',
    heal: () => sh(`kubectl -n ${scene.namespace} delete meshendpoints ca`),
  },
];

describe('doctor on a cluster', () => {
  it.each(BREAKS.map(each => [each.what, each] as const))(
    'names %s, and finds nothing wrong after the fix',
    async (_what, { by, check, heal, after }) => {
      printLogsOnFailure(scene.client, OWN, GATEWAY);
      await by();
      const named = await until(
        `the check ${check} to fail`,
        async note => {
          const failures = await newFailures();
          note(failures.map(textOf).join('; '));
          const found = failures.filter(line => line.check === check && line.is === 'failed');
          return found.length > 0 ? found : undefined;
        },
        SLOWLY,
      );
      expect(heal ?? named[0]?.fix).toBeDefined();
      if (heal) await heal();
      else for (const { fix = '' } of named) await follow(fix);
      const left = await until(
        'nothing to fail',
        async note => {
          const failures = await newFailures();
          note(failures.map(textOf).join('; '));
          return failures.length === 0 ? failures : undefined;
        },
        SLOWLY,
      );
      await after?.();
      expect(left).toEqual([]);
      await scene.answerOf('web-1');
    },
  );
});

const SLOWLY = { timeoutMs: 300_000, everyMs: 500 };
