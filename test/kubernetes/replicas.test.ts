import { describe, expect, it } from 'vitest';
import { kubernetesReplicas } from '../../src/kubernetes/replicas.ts';
import { KubeError } from '../../src/kubernetes/transport/transport.ts';
import type { KubeRequest } from '../../src/kubernetes/transport/transport.ts';

const PATH = '/api/v1/namespaces/mesh-system/configmaps';
const NOT_FOUND = new KubeError('NotFound', 'not found', { status: 404 });

/** Replicas on a server that gives one response after the other. */
function replicasOn(...responses: readonly unknown[]) {
  const requests: KubeRequest[] = [];
  const send = async (request: KubeRequest): Promise<unknown> => {
    const response = responses[requests.push(request) - 1];
    await Promise.resolve();
    if (response instanceof Error) throw response;
    return response;
  };
  return { replicas: kubernetesReplicas({ transport: { send }, namespace: 'mesh-system' }), requests };
}

const pod = (name: string, component: string, more: object = {}) => ({
  metadata: { name, uid: `uid-${name}`, labels: { 'app.kubernetes.io/name': component } },
  spec: {},
  status: { podIP: '10.0.0.1', conditions: [{ type: 'Ready', status: 'True' }] },
  ...more,
});

describe('the pods of an installation', () => {
  it('are those of the operator and of the extension server', async () => {
    const items = [pod('a', 'mesh-operator'), pod('b', 'mesh-extension-server'), pod('c', 'other'), null];
    const { replicas, requests } = replicasOn({ items });
    const shared = { address: '10.0.0.1', isReady: true };
    expect(await replicas.pods()).toEqual([
      { component: 'operator', name: 'a', uid: 'uid-a', ...shared },
      { component: 'extensionServer', name: 'b', uid: 'uid-b', ...shared },
    ]);
    expect(requests).toMatchObject([
      {
        verb: 'list',
        path: '/api/v1/namespaces/mesh-system/pods',
        query: { labelSelector: 'app.kubernetes.io/name in (mesh-operator,mesh-extension-server)' },
      },
    ]);
  });

  const labels = { 'app.kubernetes.io/name': 'mesh-operator' };
  it.each<readonly [string, object, object]>([
    ['deleted', { metadata: { labels, deletionTimestamp: 'now' } }, { isReady: false }],
    ['not ready', { status: { podIP: '10.0.0.1' } }, { isReady: false, address: '10.0.0.1' }],
    ['without an address', { status: {} }, { address: undefined }],
    ['in the network of its node', { spec: { hostNetwork: true } }, { isReady: true, address: undefined }],
  ])('may be %s', async (_what, more, expected) => {
    const { replicas } = replicasOn({ items: [pod('a', 'mesh-operator', more)] });
    expect((await replicas.pods())[0]).toMatchObject(expected);
  });
});

describe('the reports of replicas', () => {
  it('are none where there is no ConfigMap', async () => {
    expect(await replicasOn(NOT_FOUND).replicas.reports()).toEqual({});
  });

  it('are the texts of the ConfigMap', async () => {
    const { replicas, requests } = replicasOn({ data: { a: 'one', b: 7 } });
    expect(await replicas.reports()).toEqual({ a: 'one' });
    expect(requests).toEqual([{ verb: 'get', path: `${PATH}/mesh-network-policies` }]);
  });

  const changes = { a: 'one', b: null };
  const patch = {
    verb: 'patch',
    path: `${PATH}/mesh-network-policies`,
    body: { type: 'application/merge-patch+json', value: { data: changes } },
  };
  const create = { verb: 'create', path: PATH, body: { value: { data: { a: 'one' } } } };

  it('change without those of others', async () => {
    const { replicas, requests } = replicasOn({});
    await replicas.report(changes);
    expect(requests).toMatchObject([patch]);
  });

  it('create the ConfigMap, unless another replica is first', async () => {
    const alone = replicasOn(NOT_FOUND, {});
    await alone.replicas.report(changes);
    expect(alone.requests).toMatchObject([patch, create]);
    const beaten = replicasOn(NOT_FOUND, new KubeError('Conflict', 'exists', { status: 409 }), {});
    await beaten.replicas.report(changes);
    expect(beaten.requests).toMatchObject([patch, create, patch]);
  });

  it.each([
    ['Forbidden', 'Refused'],
    ['Unreachable', 'Unavailable'],
  ] as const)('that fail with %s are %s', async (reason, expected) => {
    const error = new KubeError(reason, 'the request failed');
    const failure = { name: 'ResourceError', reason: expected };
    await expect(replicasOn(error).replicas.report(changes)).rejects.toMatchObject(failure);
    await expect(replicasOn(error).replicas.reports()).rejects.toMatchObject(failure);
    await expect(replicasOn(error).replicas.pods()).rejects.toMatchObject(failure);
  });
});
