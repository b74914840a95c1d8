import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { applyAll } from '../../../lab/kube/apply.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { waitFor } from '../../../lab/process/wait.ts';
import { runCheck } from '../../../src/tools/check/command.ts';
import { createAccount, writeKubeconfig } from '../../support/cluster/account.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { meshBackend, named, openGateway, route } from '../../support/declared.ts';
import { meshEndpoints } from '../../support/objects.ts';

const cluster = testCluster();
const client = kubeClient(cluster.access);

const ROUTES = { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute' };

let folder: string;
let namespace: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'mesh-check-'));
  namespace = await createNamespace(client);
  const { group: _, ...withoutGroup } = meshBackend();
  await applyAll(client, [
    openGateway(`${namespace}/public`, { gatewayClassName: 'none' }) as KubeObject,
    named(meshEndpoints({ tailnet: 'nowhere.ts.net' }), `${namespace}/web`) as KubeObject,
    route('HTTPRoute', `${namespace}/web`) as KubeObject,
    route('HTTPRoute', `${namespace}/wrong`, {
      parentRefs: [{ name: 'pubic' }],
      rules: [{ backendRefs: [withoutGroup] }],
    }) as KubeObject,
  ]);
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await removeNamespace(client, namespace);
});

/** Checks the namespace of the test with a kubeconfig; returns the exit code and the lines. */
async function checked(kubeconfig: string) {
  const lines: string[] = [];
  const spies = (['log', 'error'] as const).map(name =>
    vi.spyOn(console, name).mockImplementation((text: string) => void lines.push(...text.split('\n'))),
  );
  try {
    const status = await runCheck(['--kubeconfig', kubeconfig, '--namespace', namespace], {});
    return { status, lines: lines.map(line => line.replaceAll(namespace, 'NAMESPACE')) };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

it('check finds in a cluster what its API server accepts and nothing uses', async () => {
  const { status, lines } = await checked(cluster.kubeconfig);
  expect(status).toBe(1);
  expect(lines.slice(0, -1)).toEqual([
    expect.stringContaining('HTTPRoute NAMESPACE/web: error: spec.rules[0].backendRefs[0]: '),
    expect.stringContaining(
      'HTTPRoute NAMESPACE/wrong: error: spec.rules[0].backendRefs[0]: has no group, so that Envoy Gateway',
    ),
    expect.stringContaining(
      'HTTPRoute NAMESPACE/wrong: error: spec.parentRefs[0].name: Gateway NAMESPACE/pubic does not exist: did you mean public? [ParentNotFound]',
    ),
  ]);
  expect(lines[0]).toContain('[TailnetNotFound]');
});

it('check names what the user may not read, and reports nothing that depends on it', async () => {
  const rules = [
    { apiGroups: ['gateway.networking.k8s.io'], resources: ['httproutes'], verbs: ['list'] as const },
    { apiGroups: ['mesh-gateway.dev'], resources: ['meshendpoints'], verbs: ['list'] as const },
  ];
  const account = { namespace, name: 'reader' };
  const token = await createAccount(client, account, { cluster: [], own: rules });
  const reader = client.withToken(token);
  // The server applies new rights a moment after they are stored.
  await waitFor('the rights to hold', async () => {
    const { status } = await reader.request('GET', await client.pathOf({ ...ROUTES, namespace }));
    return status === 200 || undefined;
  });
  const { status, lines } = await checked(writeKubeconfig(folder, client, token));
  expect(status).toBe(1);
  expect(lines.filter(line => line.includes('error:'))).toEqual([expect.stringContaining('[GroupMissing]')]);
  const unread = lines.filter(line => line.endsWith('[NotRead]')).map(line => line.split(' ')[1]);
  expect(unread).toContain('gateways');
  expect(unread).toContain('meshtailnets');
  expect(unread).not.toContain('httproutes');
});
