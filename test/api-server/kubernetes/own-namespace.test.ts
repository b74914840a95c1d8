import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { until } from '../../../lab/process/wait.ts';
import type { AccessRule } from '../../../src/api/access.ts';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { COMPONENTS, MESH_POD } from '../../../src/api/names.ts';
import { validate } from '../../../src/api/validation/validate.ts';
import { operatorAccess } from '../../../src/controllers/registry.ts';
import { poolObjects } from '../../../src/controllers/mesh-tailnet/pool/objects.ts';
import { kubernetesNamespace } from '../../../src/kubernetes/own-namespace.ts';
import type { KubeTransport } from '../../../src/kubernetes/transport/transport.ts';
import type { OwnNamespace } from '../../../src/store/own-namespace.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { describeOwnNamespace } from '../../contract/own-namespace.ts';
import { createAccount, writeKubeconfig } from '../../support/cluster/account.ts';
import { adminTransport } from '../../support/api-server/admin-transport.ts';
import { ownApiServer } from '../../support/cluster/own-api-server.ts';
import type { OwnApiServer } from '../../support/cluster/own-api-server.ts';
import { createNamespace } from '../../support/cluster/namespace.ts';
import { testSource } from '../../support/api-server/source.ts';
import { named } from '../../support/declared.ts';
import { eventually } from '../../support/eventually.ts';
import { meshTailnet } from '../../support/objects.ts';

let own: OwnApiServer;
let admin: KubeClient;
const transports: KubeTransport[] = [];

beforeAll(async () => {
  // With this plugin a cluster demands more rights of those who set owners.
  own = await ownApiServer('--enable-admission-plugins=OwnerReferencesPermissionEnforcement');
  admin = own.server.client;
});
afterAll(async () => {
  for (const transport of transports) await transport.close();
  await own.end();
});

/** What the operator only applies, and the tests read. */
const READ_BACK: readonly AccessRule[] = [
  { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['get'] },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['get'] },
  { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles', 'rolebindings'], verbs: ['get'] },
];

/** A namespace, and the token of an operator in it, with no rights but those of the manifests and these. */
async function newNamespace(more: readonly AccessRule[] = []) {
  const namespace = await createNamespace(admin);
  const access = { ...operatorAccess, own: [...operatorAccess.own, ...more] };
  const token = await createAccount(admin, { namespace, name: COMPONENTS.operator }, access);
  return { namespace, token };
}

async function openNamespace(): Promise<OwnNamespace> {
  const { namespace, token } = await newNamespace(READ_BACK);
  const transport = adminTransport({ ...admin.access, token });
  transports.push(transport);
  const ownNamespace = kubernetesNamespace({
    ...{ transport, namespace, serviceAccount: COMPONENTS.operator },
    ...{ clock: systemClock, random: Math.random },
  });
  // The server applies new rights a moment after they are stored.
  await until('the rights to hold', async () => ({ seen: await ownNamespace.secret('any') }));
  return ownNamespace;
}

describeOwnNamespace('a namespace of a cluster, with the rights of the operator', openNamespace);

describe('the operator', () => {
  it('applies all objects of a pool, and removes them', async () => {
    const ownNamespace = await openNamespace();
    const verdict = validate('MeshTailnet', named(meshTailnet(), 'example'));
    if (!verdict.valid) throw new Error('the MeshTailnet is invalid');
    const uid = '2f1d5a0c-7f4b-4a52-9d43-0a5b6e3c1d11';
    const tailnet: Kinds['MeshTailnet'] = {
      ...verdict.object,
      metadata: { ...verdict.object.metadata, uid },
    };
    const { supporting, statefulSet } = poolObjects({
      ...{ tailnet, installation: '01234567', namespace: ownNamespace.namespace, defaults: {} },
      ...{ controlURL: 'https://control.example', ca: 'a certificate', replicas: 2, ordinals: 2 },
      relayImage: 'mesh-gateway:test',
    });
    const objects = [...supporting, statefulSet];
    for (const object of objects) await ownNamespace.apply(object);
    for (const { kind, metadata } of objects) {
      expect(await ownNamespace.get(kind, metadata.name)).toMatchObject({ metadata });
      await ownNamespace.remove(kind, metadata.name);
      expect(await ownNamespace.get(kind, metadata.name)).toBeUndefined();
    }
  });

  it('takes over the fields that it applies, and keeps labels of others', async () => {
    const ownNamespace = await openNamespace();
    const metadata = { namespace: ownNamespace.namespace, name: 'meshd-example' };
    const labels = { 'example.com/team': 'a', shared: 'theirs' };
    await admin.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...metadata, labels } });
    await ownNamespace.apply({
      ...{ apiVersion: 'v1', kind: 'ServiceAccount' },
      metadata: { name: metadata.name, labels: { shared: 'ours' } },
    });
    expect(await ownNamespace.get('ServiceAccount', metadata.name)).toMatchObject({
      metadata: { labels: { 'example.com/team': 'a', shared: 'ours' } },
    });
  });

  it('is refused what its Role does not allow, and what is invalid', async () => {
    const ownNamespace = await openNamespace();
    const escalating = ownNamespace.apply({
      ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'escalating' } },
      rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['list'] }],
    });
    await expect(escalating).rejects.toMatchObject({ name: 'ResourceError', reason: 'Refused' });
    const invalid = ownNamespace.createSecret({ name: 'Not_A_Name', data: { key: 'planted-secret' } });
    await expect(invalid).rejects.toMatchObject({ name: 'ResourceError', reason: 'Refused' });
    await expect(invalid).rejects.not.toThrow('planted-secret');
  });
});

function pod(namespace: string, name: string, labels: Readonly<Record<string, string>>): KubeObject {
  const containers = [{ name: 'meshd', image: 'example.com/meshd:1' }];
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name, labels } },
    spec: { automountServiceAccountToken: false, containers },
  };
}

describe('the Pods that the operator reads', () => {
  it('are those of its namespace with the label of mesh pods', async () => {
    const [{ namespace, token }, other] = [await newNamespace(), await createNamespace(admin)];
    const folder = mkdtempSync(join(tmpdir(), 'own-namespace-'));
    const labels = { ...MESH_POD.labels, 'mesh-gateway.dev/tailnet': 'example' };
    // The ServiceAccount of a new namespace is created a moment after it.
    const create = (object: KubeObject) => until('a pod to be created', () => admin.create(object));
    await create(pod(namespace, 'labelled', labels));
    await create(pod(namespace, 'other', { 'app.kubernetes.io/name': 'web' }));
    await create(pod(other, 'elsewhere', labels));
    const source = await testSource(writeKubeconfig(folder, admin, token), ['Pod'], { namespace });
    const names = () => source.read.list('Pod').map(({ metadata }) => metadata.name);
    const untilNamed = (...expected: readonly string[]) =>
      eventually(() => expect(names().sort()).toEqual(expected));
    try {
      source.start();
      await source.read.whenSynced();
      expect(names()).toEqual(['labelled']);
      await create(pod(namespace, 'second', labels));
      await create(pod(other, 'elsewhere-2', labels));
      await untilNamed('labelled', 'second');
      const path = `/api/v1/namespaces/${namespace}/pods/labelled`;
      const status = { conditions: [{ type: 'Ready', status: 'True' }] };
      const contentType = 'application/strategic-merge-patch+json';
      await admin.request('PATCH', `${path}/status`, { status }, { contentType });
      const ref = { kind: 'Pod', namespace, name: 'labelled' } as const;
      await eventually(() => expect(source.read.get(ref)?.status.isReady).toBe(true));
      await admin.remove({ apiVersion: 'v1', kind: 'Pod', namespace, name: 'labelled' });
      await untilNamed('second');
    } finally {
      await source.close();
      rmSync(folder, { recursive: true });
    }
  });
});
