import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { applyAll } from '../../../lab/kube/apply.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { until } from '../../../lab/process/wait.ts';
import { operatorAccess } from '../../../src/controllers/registry.ts';
import { runCheck } from '../../../src/tools/check/command.ts';
import { runDoctor } from '../../../src/tools/doctor/command.ts';
import type { Line } from '../../../src/tools/doctor/observed.ts';
import { createAccount, writeKubeconfig } from '../../support/cluster/account.ts';
import { sharedApiServer } from '../../support/api-server/shared.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { meshBackend, named, openGateway, route } from '../../support/declared.ts';
import { meshEndpoints } from '../../support/objects.ts';

const cluster = sharedApiServer();
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

/** Runs a command; returns the exit code and what it printed. */
async function printed(command: () => Promise<number>) {
  const texts: string[] = [];
  const spies = (['log', 'error'] as const).map(name =>
    vi.spyOn(console, name).mockImplementation((text: string) => void texts.push(text)),
  );
  try {
    return { status: await command(), texts };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

/** Checks the namespace of the test with a kubeconfig; returns the exit code and the lines. */
async function checked(kubeconfig: string) {
  const args = ['--kubeconfig', kubeconfig, '--namespace', namespace];
  const { status, texts } = await printed(() => runCheck(args, {}));
  const lines = texts.flatMap(text => text.split('\n'));
  return { status, lines: lines.map(line => line.replaceAll(namespace, 'NAMESPACE')) };
}

/** What the doctor finds with a kubeconfig, by the check. */
async function diagnosed(kubeconfig: string) {
  const args = ['--kubeconfig', kubeconfig, '--output', 'json'];
  const { texts } = await printed(() => runDoctor(args, { environment: {}, operatorAccess }));
  const { checks } = JSON.parse(texts[0] ?? '{ "checks": [] }') as { readonly checks: readonly Line[] };
  return new Map(checks.map(line => [line.check, line]));
}

it('check finds in a cluster what its API server accepts and nothing uses', async () => {
  const { status, lines } = await checked(cluster.kubeconfig);
  expect(status).toBe(1);
  expect(lines.slice(0, -1)).toEqual([
    'Gateway NAMESPACE/public: error: spec.gatewayClassName: GatewayClass none does not exist, so nothing serves the Gateway: create it, or correct the name [ClassNotFound]',
    expect.stringContaining('HTTPRoute NAMESPACE/web: error: spec.rules[0].backendRefs[0]: '),
    expect.stringContaining(
      'HTTPRoute NAMESPACE/wrong: error: spec.rules[0].backendRefs[0]: has no group, so Envoy Gateway',
    ),
    expect.stringContaining(
      'HTTPRoute NAMESPACE/wrong: error: spec.parentRefs[0].name: Gateway NAMESPACE/pubic does not exist: did you mean public? [ParentNotFound]',
    ),
  ]);
  expect(lines[1]).toContain('[TailnetNotFound]');
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
  await until('the rights to hold', async () => {
    const { status } = await reader.request('GET', await client.pathOf({ ...ROUTES, namespace }));
    return status === 200;
  });
  const { status, lines } = await checked(writeKubeconfig(folder, client, token));
  expect(status).toBe(1);
  expect(lines.filter(line => line.includes('error:'))).toEqual([expect.stringContaining('[GroupMissing]')]);
  const unread = lines.filter(line => line.endsWith('[NotRead]')).map(line => line.split(' ')[1]);
  expect(unread).toContain('gateways');
  expect(unread).toContain('meshtailnets');
  expect(unread).not.toContain('httproutes');
  const crds = (await diagnosed(writeKubeconfig(folder, client, token))).get('crds');
  expect(crds?.is).toBe('not checked');
  expect(crds?.text).toContain(
    'you have no right to get /apis/apiextensions.k8s.io/v1/customresourcedefinitions/',
  );
});

it('doctor finds the CRDs as they were applied, and asks the API server about the rights of accounts', async () => {
  const lines = await diagnosed(cluster.kubeconfig);
  const found = ['kubernetes', 'crds', 'gateway-api'].map(check => lines.get(check)?.is);
  expect(found).toEqual(['ok', 'ok', 'ok']);
  expect(lines.get('rbac-operator')?.is).not.toBe('not checked');
});
