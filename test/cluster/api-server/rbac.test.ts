import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applyAll } from '../../../lab/kube/apply.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import type { KubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { until } from '../../../lab/process/wait.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';

const RBAC = 'rbac.authorization.k8s.io';

const admin = kubeClient(testCluster().access);
let own: string;
let other: string;
let reader: KubeClient;
beforeAll(async () => {
  [own, other] = await Promise.all([createNamespace(admin), createNamespace(admin)]);
  await applyAll(admin, [...rightsIn(own), configMap(own), configMap(other)]);
  reader = admin.withToken(await tokenFor(own));
  // The server applies new rights a moment after they are stored.
  await until('the rights to hold', async () => await reader.get(configRef(own)));
});
afterAll(async () => {
  await Promise.all([own, other].map(namespace => removeNamespace(admin, namespace)));
});

function rightsIn(namespace: string): readonly KubeObject[] {
  const metadata = { namespace, name: 'reader' };
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'Role',
      metadata,
      rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }],
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: RBAC, kind: 'Role', name: 'reader' },
      subjects: [{ kind: 'ServiceAccount', name: 'reader', namespace }],
    },
  ];
}

function configMap(namespace: string): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace, name: 'settings' },
    data: { color: 'blue' },
  };
}

function configRef(namespace: string) {
  return { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: 'settings' };
}

async function tokenFor(namespace: string): Promise<string> {
  const account = await admin.pathOf({ apiVersion: 'v1', kind: 'ServiceAccount', namespace, name: 'reader' });
  const tokenRequest = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
  const { body } = await admin.request('POST', `${account}/token`, tokenRequest);
  return (body as { readonly status: { readonly token: string } }).status.token;
}

const forbidden = { name: 'KubeError', status: 403, reason: 'Forbidden' };

describe('a token with a Role for ConfigMaps of its namespace', () => {
  it('gets one there', async () => {
    expect(await reader.get(configRef(own))).toMatchObject({ data: { color: 'blue' } });
  });

  it.each([
    ['list them', () => reader.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: own })],
    ['change one', () => reader.apply({ ...configMap(own), data: { color: 'red' } })],
    ['remove one', () => reader.remove(configRef(own))],
    ['get one of another namespace', () => reader.get(configRef(other))],
    ['list Secrets', () => reader.list({ apiVersion: 'v1', kind: 'Secret', namespace: own })],
    ['list the Secrets of all', () => reader.list({ apiVersion: 'v1', kind: 'Secret' })],
    ['see nodes', () => reader.list({ apiVersion: 'v1', kind: 'Node' })],
  ])('may not %s', async (_what, attempt) => {
    await expect(attempt()).rejects.toMatchObject(forbidden);
    expect(await admin.get(configRef(own))).toMatchObject({ data: { color: 'blue' } });
  });
});

describe('an unknown token', () => {
  it('is unauthenticated', async () => {
    const unknown = admin.withToken('made-up');
    await expect(unknown.get(configRef(own))).rejects.toMatchObject({ status: 401, reason: 'Unauthorized' });
  });
});
