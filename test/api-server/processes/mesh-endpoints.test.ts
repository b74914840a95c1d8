import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { until } from '../../../lab/process/wait.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import { COMPONENTS } from '../../../src/api/names.ts';
import { operatorAccess } from '../../../src/controllers/registry.ts';
import { createAccount, writeKubeconfig } from '../../support/cluster/account.ts';
import { ownApiServer } from '../../support/cluster/own-api-server.ts';
import type { OwnApiServer } from '../../support/cluster/own-api-server.ts';
import { storeReleasedLease } from '../../support/cluster/released-lease.ts';
import { meshBackend, named, route } from '../../support/declared.ts';
import { meshEndpoints, meshTailnet } from '../../support/objects.ts';
import { startServed } from '../../support/standalone/served-process.ts';

const NAMESPACE = 'mesh-system';
let own: OwnApiServer;
let admin: KubeClient;
let folder: string;
let token: string;

beforeAll(async () => {
  own = await ownApiServer();
  admin = own.server.client;
  folder = mkdtempSync(join(tmpdir(), 'mesh-endpoints-'));
  await admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  token = await createAccount(admin, { namespace: NAMESPACE, name: COMPONENTS.operator }, operatorAccess);
  await storeReleasedLease(admin, NAMESPACE);
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await own.end();
});

/** An operator that leads, with the rights that its manifests give it. */
async function startOperator() {
  const KUBECONFIG = writeKubeconfig(folder, admin, token);
  const operator = startServed('operator', {}, { KUBECONFIG, POD_NAMESPACE: NAMESPACE });
  await operator.line('became leader');
  return operator;
}

/** Runs kubectl as an administrator. */
async function kubectl(...args: readonly string[]): Promise<string> {
  const home = mkdtempSync(join(folder, 'admin-'));
  const flag = `--kubeconfig=${writeKubeconfig(home, admin, admin.access.token)}`;
  const { stdout } = await promisify(execFile)(locateBinaries(process.env)('kubectl'), [flag, ...args]);
  return stdout;
}

async function put(...objects: readonly object[]): Promise<void> {
  for (const object of objects) await admin.apply(object as KubeObject);
}

/** Waits with kubectl until RoutesResolved of a MeshEndpoints has a status. */
function routesResolved(status: string, name = 'web'): Promise<string> {
  return kubectl('wait', `--for=condition=RoutesResolved=${status}`, `mep/${name}`, '--timeout=120s');
}

const web = (name: string) => named(meshEndpoints(), `default/${name}`);
const toWeb = (port: number) =>
  route('HTTPRoute', 'default/web', { rules: [{ backendRefs: [meshBackend({ port })] }] });
const MESSAGE =
  'PortNotFound: spec.rules[0].backendRefs[0]: port 81 is not a port of MeshEndpoints default/web: use one that it has (it has 8080)';

describe('a MeshEndpoints in a cluster', () => {
  it('has a manifest in its status that creates the MeshTailnet which it lacks', async () => {
    const operator = await startOperator();
    await put(named(meshEndpoints({ tailnet: 'alone.ts.net' }), 'default/alone'));
    const message = '-o=jsonpath={.status.conditions[?(@.type=="Ready")].message}';
    const manifest = await until('the condition Ready', async () => {
      const text = await kubectl('get', 'mep', 'alone', message);
      return text.includes('kind: MeshTailnet') ? text.slice(text.indexOf('apiVersion:')) : undefined;
    });
    const file = join(folder, 'tailnet.yaml');
    writeFileSync(file, manifest);
    expect(await kubectl('apply', '-f', file)).toContain('/alone-ts-net created');
    // What it lacks now is the Secret.
    const reason = '-o=jsonpath={.status.conditions[?(@.type=="Ready")].reason}';
    const isFound = async () => (await kubectl('get', 'mep', 'alone', reason)) === 'CredentialsInvalid';
    expect(await until('the MeshTailnet to be found', isFound)).toBe(true);
    operator.child.kill('SIGKILL');
    await operator.ended;
  });

  it('shows kubectl whether its routes resolve, and a new leader writes nothing', async () => {
    const operator = await startOperator();
    const pool = { mode: 'External', addresses: ['10.0.0.1:1055'] };
    await put(named(meshTailnet({ pool }), 'example'), web('web'));
    await routesResolved('Unknown');
    await kubectl('wait', '--for=condition=Ready', 'mep/web', '--timeout=120s');
    const [header = '', row = ''] = (await kubectl('get', 'mep', 'web')).split('\n');
    expect(header.split(/\s+/)).toEqual(['NAME', 'TAILNET', 'HEALTHY', 'READY', 'REASON', 'AGE']);
    expect(row).toMatch(/^web +example\.ts\.net +1\/1 +True +EndpointsConfigured +[\dms]+$/);
    await put(toWeb(81));
    await routesResolved('False');
    const events = () =>
      kubectl('get', 'events', '--field-selector=involvedObject.kind=MeshEndpoints', '--no-headers');
    await until('the Event', async () => (await events()).includes('PortNotFound'));
    const description = (await kubectl('describe', 'mep', 'web')).replace(/\s+/g, ' ');
    expect(description).toContain(`Message: HTTPRoute default/web: ${MESSAGE}`);
    expect(description).toContain('Reason: PortNotFound Status: False Type: RoutesResolved');
    expect(description).toContain(`Routes: Kind: HTTPRoute Message: ${MESSAGE}`);
    expect(description).toMatch(/Warning PortNotFound .* mesh-operator/);
    await put(toWeb(8080));
    await routesResolved('True');
    await until('the Event', async () => (await events()).includes('Resolved'));
    const versionOf = async () => {
      const object = await admin.get({
        ...{ apiVersion: API_VERSION, kind: 'MeshEndpoints' },
        ...{ namespace: 'default', name: 'web' },
      });
      return object.metadata.resourceVersion;
    };
    const version = await versionOf();
    operator.child.kill('SIGKILL');
    await operator.ended;
    await startOperator();
    await put(web('later'));
    await routesResolved('Unknown', 'later');
    expect(await versionOf()).toBe(version);
  });
});
