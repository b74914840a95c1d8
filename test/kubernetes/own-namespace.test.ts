import { describe, expect, it } from 'vitest';
import { kubernetesNamespace } from '../../src/kubernetes/own-namespace.ts';
import { KubeError } from '../../src/kubernetes/transport/transport.ts';
import type { KubeRequest } from '../../src/kubernetes/transport/transport.ts';
import type { OwnNamespace, Workload } from '../../src/store/own-namespace.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const SERVICE: Workload = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'meshd-example' },
  spec: { ports: [{ port: 1055 }] },
};
const SECRET = { name: 'meshd-example-0', data: { authkey: 'planted-secret' } };

/** A namespace of a server that gives one response after the other, and repeats the last. */
function namespaceOn(...responses: readonly unknown[]) {
  const clock = new VirtualClock();
  const term = new AbortController();
  const requests: KubeRequest[] = [];
  const send = async (request: KubeRequest): Promise<unknown> => {
    const response = responses[Math.min(requests.push(request), responses.length) - 1];
    await Promise.resolve();
    if (response instanceof Error) throw response;
    return response;
  };
  const ownNamespace = kubernetesNamespace({
    transport: { send },
    namespace: 'mesh-system',
    serviceAccount: 'mesh-operator',
    clock,
    random: () => 0,
    fence: { signal: () => term.signal },
  });
  return { ownNamespace, clock, term, requests };
}

type Write = (ownNamespace: OwnNamespace) => Promise<unknown>;

const writes: readonly (readonly [what: string, Write])[] = [
  ['apply', ownNamespace => ownNamespace.apply(SERVICE)],
  ['get', ownNamespace => ownNamespace.get('Service', 'meshd-example')],
  ['createSecret', ownNamespace => ownNamespace.createSecret(SECRET)],
  [
    'changeSecret',
    ownNamespace =>
      ownNamespace.changeSecret('meshd-example-0', '7', { data: { authkey: 'planted-secret' } }),
  ],
  ['remove', ownNamespace => ownNamespace.remove('Pod', 'meshd-example-0', 'u')],
];

describe.each(writes)("%s of the operator's namespace", (_what, write) => {
  it('sends nothing where this process is not the leader', async () => {
    const { ownNamespace, term, requests } = namespaceOn({});
    term.abort();
    await expect(write(ownNamespace)).rejects.toMatchObject({ name: 'ResourceError', reason: 'Unavailable' });
    await expect(write(ownNamespace)).rejects.toThrow('not the leader');
    expect(requests).toEqual([]);
  });

  it('fails with Unavailable where leadership is lost before the response', async () => {
    const { ownNamespace, term } = namespaceOn(new KubeError('Aborted', 'aborted'));
    const begun = write(ownNamespace);
    term.abort();
    await expect(begun).rejects.toMatchObject({ reason: 'Unavailable' });
  });

  it('retries busy responses', async () => {
    const { ownNamespace, clock, requests } = namespaceOn(new KubeError('Busy', 'busy', { status: 429 }), {});
    const begun = write(ownNamespace);
    await clock.advance(1000);
    await begun;
    expect(requests).toHaveLength(2);
  });

  it.each([
    ['Forbidden', 'Refused'],
    ['Invalid', 'Refused'],
    ['Failed', 'Unavailable'],
    ['Unreachable', 'Unavailable'],
    ['Unauthorized', 'Unavailable'],
  ] as const)('that fails with %s is %s, without what was sent', async (reason, expected) => {
    const { ownNamespace } = namespaceOn(new KubeError(reason, 'the request failed'));
    await expect(write(ownNamespace)).rejects.toMatchObject({ name: 'ResourceError', reason: expected });
    await expect(write(ownNamespace)).rejects.toThrow(/mesh-system\/meshd-example.*: the request failed$/);
  });
});

describe("the operator's namespace", () => {
  it('is read also where this process is not the leader', async () => {
    const { ownNamespace, term } = namespaceOn({
      data: { key: 'dmFsdWU=' },
      metadata: { resourceVersion: '7' },
    });
    term.abort();
    expect(await ownNamespace.secret('mesh-oauth')).toEqual({
      version: '7',
      data: { key: 'value' },
      annotations: {},
    });
  });

  it('takes over the fields that it applies', async () => {
    const { ownNamespace, requests } = namespaceOn({});
    await ownNamespace.apply(SERVICE);
    expect(requests).toMatchObject([
      {
        verb: 'apply',
        path: '/api/v1/namespaces/mesh-system/services/meshd-example',
        query: { fieldManager: 'mesh-gateway', force: 'true' },
        body: { value: { ...SERVICE, metadata: { name: 'meshd-example', namespace: 'mesh-system' } } },
      },
    ]);
  });

  it('reads Secrets that others have written in odd ways', async () => {
    const metadata = { resourceVersion: '7', annotations: { a: 1, b: 'c' } };
    const data = { key: null, device_id: 'ZDE=' };
    const { ownNamespace } = namespaceOn({ metadata, data });
    expect(await ownNamespace.secret('meshd-example-0')).toMatchObject({
      data: { key: '', device_id: 'd1' },
      annotations: { a: '', b: 'c' },
    });
  });

  it('refuses a response that is not an object', async () => {
    const { ownNamespace } = namespaceOn('proxy error');
    await expect(ownNamespace.apply(SERVICE)).rejects.toMatchObject({ reason: 'Unavailable' });
  });
});
