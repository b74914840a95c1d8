import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { JSONWebKeySet } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NETWORK } from '../../../lab/cluster/network.ts';
import { startControlApi } from '../../../lab/control-api/control-api.ts';
import type { ControlApi } from '../../../lab/control-api/control-api.ts';
import { tailnetBehind } from '../../../lab/control-api/real-tailnet.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { createNamespace, removeNamespace } from '../../support/cluster/namespace.ts';
import { runInPod } from '../../support/cluster/run-pod.ts';

const { access, tailnet, kubectl, kubeconfig } = testCluster();
const run = promisify(execFile);
const client = kubeClient(access);

let namespace: string;
let api: ControlApi;
beforeAll(async () => {
  namespace = await createNamespace(client, { 'pod-security.kubernetes.io/enforce': 'restricted' });
  api = await startControlApi({ host: NETWORK.outer, behind: tailnetBehind(tailnet.admin) });
});
afterAll(async () => {
  await api.close();
  await removeNamespace(client, namespace);
});

describe('a control API in front of the tailnet of a cluster', () => {
  it('exchanges a token of a ServiceAccount for one of its own, for a pod', async () => {
    printLogsOnFailure(client, namespace);
    const read = async (path: string): Promise<unknown> => {
      // The API server sends its keys only for this Accept header.
      const { stdout } = await run(kubectl, [`--kubeconfig=${kubeconfig}`, 'get', '--raw', path]);
      return JSON.parse(stdout);
    };
    const { issuer } = (await read('/.well-known/openid-configuration')) as { readonly issuer: string };
    api.trustIssuer(issuer, (await read('/openid/v1/jwks')) as JSONWebKeySet);
    const subject = `system:serviceaccount:${namespace}:default`;
    const identity = { scopes: ['devices:core:read'], issuer, subject, audience: 'mesh' };
    const clientId = api.addFederatedIdentity(identity);
    const tokenFor = async (audience: string) => {
      const path = `/api/v1/namespaces/${namespace}/serviceaccounts/default/token`;
      const spec = { audiences: [audience] };
      const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
      const { body } = await client.request('POST', path, request);
      return (body as { readonly status: { readonly token: string } }).status.token;
    };
    const script = (jwt: string) => `
      const url = '${api.url}/api/v2';
      const body = new URLSearchParams({ client_id: '${clientId}', jwt: '${jwt}' });
      const exchanged = await fetch(url + '/oauth/token-exchange', { method: 'POST', body });
      const { access_token: token, message = '' } = await exchanged.json();
      const headers = { authorization: 'Bearer ' + token };
      const listed = await fetch(url + '/tailnet/-/devices', { headers });
      console.log(exchanged.status, listed.status, message);`;
    expect(await runInPod(client, namespace, script(await tokenFor('mesh')))).toBe('200 200 \n');
    const refused = await runInPod(client, namespace, script(await tokenFor('other')));
    expect(refused).toBe('401 401 JWT is not valid: unexpected "aud" claim value\n');
  });
});
