import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { KubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { conditionsOf } from '../../../lab/kube/state.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { until } from '../../../lab/process/wait.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import { clusterNameIn, COMPONENTS, SECRET_READER } from '../../../src/api/names.ts';
import { operatorAccess } from '../../../src/controllers/registry.ts';
import { extensionServerAccess } from '../../../src/traffic/access.ts';
import { createAccount, writeKubeconfig } from '../../support/cluster/account.ts';
import { ownApiServer } from '../../support/cluster/own-api-server.ts';
import type { OwnApiServer } from '../../support/cluster/own-api-server.ts';
import { storeReleasedLease } from '../../support/cluster/released-lease.ts';
import { named } from '../../support/declared.ts';
import { forward, startMember } from '../../support/health/member.ts';
import { listenForTest, startHttpService } from '../../support/health/services.ts';
import { OTHER_AUTHORITY } from '../../support/kubernetes/wire-certificates.ts';
import { CA, CERTIFICATES } from '../../support/lab/health/certificates.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../support/objects.ts';
import { requestPath, startServed } from '../../support/standalone/served-process.ts';

const NAMESPACE = 'mesh-system';
let own: OwnApiServer;
let admin: KubeClient;
let folder: string;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  own = await ownApiServer();
  admin = own.server.client;
  folder = mkdtempSync(join(tmpdir(), 'mesh-references-'));
  await put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  const accounts = {
    [COMPONENTS.operator]: operatorAccess,
    [COMPONENTS.extensionServer]: extensionServerAccess,
  };
  for (const [name, access] of Object.entries(accounts)) {
    tokens[name] = await createAccount(admin, { namespace: NAMESPACE, name }, access);
  }
  await storeReleasedLease(admin, NAMESPACE);
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await own.end();
});

async function put(...objects: readonly object[]): Promise<void> {
  for (const object of objects) await admin.apply(object as KubeObject);
}

/** One of our processes, with the rights that its manifests give it. */
function start(command: string, account: string) {
  const home = mkdtempSync(join(folder, 'process-'));
  const KUBECONFIG = writeKubeconfig(home, admin, tokens[account] ?? '');
  return startServed(command, {}, { KUBECONFIG, POD_NAMESPACE: NAMESPACE, SYNC_PERIOD: '1s' });
}

/** Runs kubectl as an administrator. */
async function kubectl(...args: readonly string[]): Promise<string> {
  const home = mkdtempSync(join(folder, 'admin-'));
  const flag = `--kubeconfig=${writeKubeconfig(home, admin, admin.access.token)}`;
  const { stdout } = await promisify(execFile)(locateBinaries(process.env)('kubectl'), [flag, ...args]);
  return stdout;
}

/** A tailnet whose proxy connects to a service on this machine instead of any other address. */
async function startTailnet(tailnet: string, port: number): Promise<void> {
  const member = await startMember();
  onTestFinished(() => member.close());
  member.onConnect = (_authority, socket, early) => forward(`127.0.0.1:${port}`, socket, early);
  const { address, port: proxyPort } = member.proxy;
  const pool = { mode: 'External', addresses: [`${address}:${proxyPort}`] };
  await put(named(meshTailnet({ tailnet, pool }), tailnet.replaceAll('.', '-')));
}

const CHECK = { enabled: true, interval: '1s', timeout: '1s', healthyThreshold: 1, unhealthyThreshold: 1 };

const ref = (name: string) => ({
  apiVersion: API_VERSION,
  kind: 'MeshEndpoints',
  namespace: 'default',
  name,
});

/** Waits until Ready of a MeshEndpoints has a reason; returns its message. */
function messageOf(name: string, reason: string, part = ''): Promise<string> {
  return until(`${name} to be ${reason} ${part}`, async () => {
    const found = conditionsOf(await admin.get(ref(name))).find(({ type }) => type === 'Ready');
    const { message = '' } = found ?? {};
    return found?.reason === reason && message.includes(part) ? message : undefined;
  });
}

describe('what a MeshEndpoints refers to in its namespace', () => {
  it('are certificates of a private CA, which are replaced, missed and found again', async () => {
    const { port } = await listenForTest(
      createServer(CERTIFICATES.valid, (_request, response) => void response.end()),
    );
    await startTailnet('ca.ts.net', port);
    await start('operator', COMPONENTS.operator).line('became leader');
    await start('extension-server', COMPONENTS.extensionServer).line('serving Envoy Gateway and Envoy');
    const tls = { serverName: 'web-1.example.ts.net', caRef: { name: 'private-ca' } };
    const web = endpoint({ port: 443, protocol: 'HTTPS', tls, healthCheck: CHECK });
    await put(named(meshEndpoints({ tailnet: 'ca.ts.net', endpoints: [web] }), 'default/web'));
    const trust = (text: string) =>
      put({
        ...{ apiVersion: 'v1', kind: 'ConfigMap' },
        ...{ metadata: { namespace: 'default', name: 'private-ca' }, data: { 'ca.crt': text } },
      });
    await messageOf(
      'web',
      'InvalidReference',
      'tls.caRef cannot be used: ConfigMap default/private-ca does not exist',
    );
    await trust(CA);
    await messageOf('web', 'EndpointsConfigured');
    const published = await kubectl('get', 'configmap', 'mesh-trust', '-n', NAMESPACE, '-o', 'json');
    expect(published).toContain('default/private-ca/ca.crt ');
    await trust(OTHER_AUTHORITY.ca);
    await messageOf('web', 'NoHealthyEndpoints', 'certificate is signed by an unknown authority');
    await trust(`${OTHER_AUTHORITY.ca}\n${CA}`);
    await messageOf('web', 'EndpointsConfigured');
    await kubectl('delete', 'configmap', 'private-ca');
    await messageOf('web', 'InvalidReference', 'does not exist');
  });

  it('are Secrets for headers, once the RoleBinding of the message is applied', async () => {
    const accepted = { token: 'hidden-first-token' };
    const { port } = await startHttpService(({ headers }, response) => {
      response.writeHead(headers.authorization === `Bearer ${accepted.token}` ? 200 : 401).end();
    });
    await startTailnet('headers.ts.net', port);
    const operator = start('operator', COMPONENTS.operator);
    await operator.line('became leader');
    const { metricsPort } = await operator.line('serving metrics and probes');
    const storeToken = () =>
      put({
        ...{ apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'default', name: 'auth' } },
        stringData: { authorization: `Bearer ${accepted.token}\n` },
      });
    await storeToken();
    await put({
      ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' },
      metadata: { name: clusterNameIn(NAMESPACE, SECRET_READER) },
      rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }],
    });
    const headersFrom = [{ name: 'Authorization', secretKeyRef: { name: 'auth', key: 'authorization' } }];
    const web = endpoint({ healthCheck: { ...CHECK, headersFrom } });
    await put(named(meshEndpoints({ tailnet: 'headers.ts.net', endpoints: [web] }), 'default/secret'));
    const message = await messageOf('secret', 'InvalidReference', 'kind: RoleBinding');
    const file = join(folder, 'role-binding.yaml');
    writeFileSync(file, message.slice(message.indexOf('apiVersion:')));
    await kubectl('apply', '-f', file);
    await messageOf('secret', 'EndpointsConfigured');
    accepted.token = 'hidden-second-token';
    await messageOf('secret', 'NoHealthyEndpoints', 'got 401, expected 200');
    await storeToken();
    await messageOf('secret', 'EndpointsConfigured');
    const seen = [
      JSON.stringify(operator.lines),
      operator.output(),
      await kubectl('get', 'mep,events', '-o', 'yaml'),
      ...(await requestPath(metricsPort, '/metrics')),
    ];
    expect(seen.join('\n')).not.toMatch(/hidden-(first|second)-token/);
  });
});
