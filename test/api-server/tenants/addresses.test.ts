import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AccessRule } from '../../../src/api/access.ts';
import { API_VERSION, GROUP } from '../../../src/api/generated/kinds.ts';
import { REPORT } from '../../../src/api/names.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import { readManifests } from '../../../lab/kube/manifests.ts';
import { until } from '../../../lab/process/wait.ts';
import { createAccount } from '../../support/cluster/account.ts';
import {
  NOISY,
  startMeshProxy,
  startTenants,
  statusWhen,
  tailnetBehind,
  tenantEndpoints,
  tenantRoute,
} from '../../support/cluster/tenants.ts';
import type { Tenants } from '../../support/cluster/tenants.ts';
import { followEndpoints } from '../../support/grpc/followed-endpoints.ts';

/** The admission policy of the default manifests, with its binding. */
const ADMISSION = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'];

let tenants: Tenants;
beforeAll(async () => {
  tenants = await startTenants();
  const manifests = readManifests('dist/manifests');
  await applyAll(
    tenants.admin,
    manifests.filter(({ kind }) => ADMISSION.includes(kind)),
  );
});
afterAll(() => tenants.end());

const SETTINGS = {
  KUBERNETES_SERVICE_HOST: '100.96.0.1',
  REFUSED_ADDRESSES: '100.88.0.0/16',
  EXTERNAL_TARGETS_ALLOW: '10.1.0.0/16,by-name.service.example',
};

const object = { namespace: NOISY, name: 'web' };

/** The addresses in a status that the operator has not written, by endpoint. */
const WRITTEN: Readonly<Record<string, readonly string[]>> = {
  public: ['9.9.9.9'],
  allowed: ['10.1.2.3'],
  loopback: ['127.0.0.1'],
  pod: ['10.244.1.7'],
  metadata: ['169.254.169.254'],
  'api-server': ['100.96.0.1'],
  refused: ['100.88.0.1'],
  partly: ['8.8.8.8', '10.244.1.8'],
  // For a host that is allowed by name, the extension server cannot know the right addresses: only the admission policy can help.
  'by-name': ['10.244.1.9'],
};

const targets = Object.keys(WRITTEN).map((name, at) => ({
  ...{ name, meshIP: `100.64.1.${at + 1}`, meshFQDN: `${name}.example.ts.net`, port: 80, protocol: 'HTTP' },
  externalTarget: `${name}.service.example:80`,
}));

/** Checked endpoints in the tailnet: a device, the API server, and what the configuration refuses. */
const inTailnet = ['100.64.0.1', '100.96.0.1', '100.88.0.2'].map((meshIP, at) => ({
  ...{ name: `mesh-${at}`, meshIP, meshFQDN: `mesh-${at}.example.ts.net`, port: 80, protocol: 'HTTP' },
  healthCheck: { enabled: true },
}));

const OPEN = ['9.9.9.9:80', '10.1.2.3:80', '10.244.1.9:80', '100.64.0.1:80'].sort();

it('the API server refuses a status by a user with the right to write it, and names the fix', async () => {
  const { admin } = tenants;
  const name = 'by-name';
  const ref = { apiVersion: API_VERSION, kind: 'MeshEndpoints', namespace: NOISY, name };
  const endpoints = targets.filter(target => target.name === name);
  await admin.create(tenantEndpoints(NOISY, name, endpoints));
  const grant = (...verbs: AccessRule['verbs']): readonly AccessRule[] => [
    { apiGroups: [GROUP], resources: ['meshendpoints/status'], verbs },
  ];
  // A Role may grant the verb of the policy, which counts for the whole cluster only.
  const access = { cluster: grant('get', 'patch', 'update'), own: grant('get', 'patch', 'update', REPORT) };
  const account = { namespace: NOISY, name: 'status-writer' };
  const user = admin.withToken(await createAccount(admin, account, access));
  // The API server applies a new Role, and a new policy, after a moment.
  await until('the policy to refuse a status', async note => {
    const { message } = await user.patchStatus(ref, { summary: null }).then(
      () => new Error('it was written'),
      (error: unknown) => error as Error,
    );
    note(message);
    return message.includes('ValidatingAdmissionPolicy');
  });

  const status = { endpoints: [{ name, status: 'Healthy', resolvedAddresses: WRITTEN[name] }] };
  // Its resourceVersion is another one where a status was written before the policy applied.
  const object = await admin.get(ref);
  const { apiVersion, kind, metadata } = tenantEndpoints(NOISY, name, endpoints);
  const path = `${await admin.pathOf(ref)}/status`;
  const apply = `${path}?fieldManager=user&force=true`;
  const answers = await Promise.all([
    user.request('PUT', path, { ...object, status }),
    user.request('PATCH', path, { status }, { contentType: 'application/merge-patch+json' }),
    user.request(
      'PATCH',
      apply,
      { apiVersion, kind, metadata, status },
      { contentType: 'application/apply-patch+yaml' },
    ),
  ]);
  for (const answer of answers) {
    expect(answer.status).toBe(403);
    expect(JSON.stringify(answer.body)).toContain(`to a ClusterRole with the verb ${REPORT}`);
  }
  expect(await admin.get(ref)).not.toHaveProperty('status.endpoints');
  await admin.remove(ref);
});

it('a hand-written status and a meshIP open no address, with and without the operator', async () => {
  const { admin, startExtensionServer, startOperator } = tenants;
  const dialled = new Set<string>();
  const proxy = await startMeshProxy(target => {
    dialled.add(target);
    return 200;
  });
  await admin.apply(tailnetBehind(proxy));
  await admin.apply(tenantEndpoints(object.namespace, object.name, [...targets, ...inTailnet]));
  await admin.apply(tenantRoute(object.namespace, object.name));
  const entries = targets.map(({ name, externalTarget }) => ({
    ...{ name, externalTarget, status: 'Healthy', resolvedAddresses: WRITTEN[name] },
  }));
  const lying = { name: 'mesh-0', status: 'Healthy', resolvedAddresses: ['9.9.9.8'] };
  await admin.patchStatus(
    { apiVersion: API_VERSION, kind: 'MeshEndpoints', ...object },
    { endpoints: [...entries, lying] },
  );
  const client = await startExtensionServer(SETTINGS);
  const endpoints = followEndpoints(client, `${NOISY}/web`, `httproute/${NOISY}/web/rule/0`);
  const first = await until('the endpoints', () => endpoints());
  expect([...first].sort()).toEqual(OPEN);

  await startOperator(SETTINGS);
  const status = await statusWhen(admin, object, found =>
    found.endpoints?.some(({ name, lastChecked }) => name === 'mesh-0' && lastChecked !== undefined)
      ? found
      : undefined,
  );
  const errorOf = (name: string) => status.endpoints?.find(entry => entry.name === name)?.error;
  expect(errorOf('mesh-1')).toContain('100.96.0.1 is an address of the API server');
  expect(errorOf('mesh-2')).toContain('100.88.0.2 is in 100.88.0.0/16 of REFUSED_ADDRESSES');
  expect(errorOf('pod')).toContain('10.244.1.7, an address of pod.service.example, is not public');
  const resolved = status.conditions?.find(({ type }) => type === 'RoutesResolved');
  expect(resolved).toMatchObject({ status: 'False', reason: 'AddressRefused' });
  expect([...dialled]).toEqual(['100.64.0.1:80']);
  expect([...(endpoints() ?? [])].sort()).toEqual(OPEN);
});
