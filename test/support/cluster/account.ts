import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Access, AccessRule } from '../../../src/api/access.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import type { KubeClient } from '../../../lab/kube/client.ts';
import { until } from '../../../lab/process/wait.ts';
import { mayDo, rightsIn } from './install/rights.ts';

const RBAC = 'rbac.authorization.k8s.io';

/** The ServiceAccount of one of our processes. */
export type Account = { readonly namespace: string; readonly name: string };

/** Creates a ServiceAccount with exactly these rights, and waits until it has them; returns a token of it. */
export async function createAccount(admin: KubeClient, account: Account, access: Access): Promise<string> {
  const { namespace, name } = account;
  const subjects = [{ kind: 'ServiceAccount', name, namespace }];
  const metadata = { name, namespace };
  const rights = (kind: 'Role' | 'ClusterRole', where: object, rules: readonly AccessRule[]) => [
    { apiVersion: `${RBAC}/v1`, kind, metadata: where, rules },
    {
      apiVersion: `${RBAC}/v1`,
      kind: `${kind}Binding`,
      metadata: where,
      roleRef: { apiGroup: RBAC, kind, name },
      subjects,
    },
  ];
  const objects = [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    ...rights('ClusterRole', { name }, access.cluster),
    ...rights('Role', metadata, access.own),
  ];
  await applyAll(admin, objects);
  const token = await tokenOf(admin, account);
  // The server applies new rights a moment after they are stored, all those of a role at once.
  const [inCluster] = rightsIn(access.cluster, '');
  const [inNamespace] = rightsIn(access.own, namespace);
  for (const right of [inCluster, inNamespace]) {
    if (!right) continue;
    const isHeld = async () => await mayDo(admin.withToken(token), right);
    await until(`${name} to have its rights`, isHeld);
  }
  return token;
}

/** A token of a ServiceAccount, as its pods get one. */
export async function tokenOf(admin: KubeClient, { namespace, name }: Account): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
  const { body } = await admin.request('POST', path, request);
  const { token } = (body as { readonly status: { readonly token: string } }).status;
  return token;
}

/** Writes a kubeconfig with a token, readable by its owner alone; returns its path. */
export function writeKubeconfig(
  folder: string,
  { access }: Pick<KubeClient, 'access'>,
  token: string,
): string {
  const file = join(folder, 'kubeconfig');
  const { server, caFile } = access;
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'test',
        cluster: { server, 'certificate-authority-data': readFileSync(caFile).toString('base64') },
      },
    ],
    users: [{ name: 'test', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  };
  writeFileSync(file, JSON.stringify(kubeconfig), { mode: 0o600 });
  return file;
}
