import { connect } from 'node:net';
import { once } from 'node:events';
import { vi } from 'vitest';
import type { KubeClient } from '../../../../lab/kube/client.ts';
import type { KubeObject } from '../../../../lab/kube/object.ts';
import { conditionsOf } from '../../../../lab/kube/state.ts';
import { until } from '../../../../lab/process/wait.ts';
import { API_VERSION } from '../../../../src/api/generated/kinds.ts';
import { formatProblem } from '../../../../src/api/problem.ts';
import type { Kinds } from '../../../../src/api/generated/types.ts';
import { runStatus } from '../../../../src/tools/status/command.ts';
import type { Status } from '../../../../src/tools/status/status.ts';
import { testCluster } from '../cluster.ts';

/**
 * Waits until what a file has applied is in use: each pool is whole, Envoy Gateway has translated each MeshBinding, no
 * Envoy differs from the objects, and kube-proxy leads to each listener of TCP. After that, an assertion about one of
 * them does not depend on another that follows.
 */
export async function settled(client: KubeClient, namespace: string): Promise<void> {
  await until('the cluster to settle', async note => {
    const late = [
      ...(await poolsThatLack(client, namespace)),
      ...(await differences()),
      ...(await silentListeners(client, namespace)),
    ];
    note(late.join('; '));
    return late.length === 0;
  });
}

async function poolsThatLack(client: KubeClient, namespace: string): Promise<readonly string[]> {
  const tailnets = await client.list({ apiVersion: API_VERSION, kind: 'MeshTailnet' });
  return tailnets
    .filter(({ metadata }) => metadata.name?.startsWith(namespace))
    .filter(tailnet => !isWhole(tailnet))
    .map(({ metadata }) => `the pool of ${metadata.name ?? ''} is not whole`);
}

/** Its mesh pods are all ready; a pool of others' proxies has none. */
function isWhole(object: KubeObject): boolean {
  const { spec, status } = object as unknown as Kinds['MeshTailnet'];
  const current = conditionsOf(object).filter(
    ({ observedGeneration = 0 }) => observedGeneration >= (object.metadata.generation ?? 0),
  );
  if (spec.pool.mode === 'External') return current.some(({ type }) => type === 'Ready');
  const isReady = current.some(one => one.type === 'PoolReady' && one.status === 'True');
  return isReady && status?.pool?.ready === status?.pool?.desired;
}

/** Where Envoys differ from the objects, and Gateways that are not translated, as `mesh-gateway status` reports them. */
async function differences(): Promise<readonly string[]> {
  const { gateways, differences = [], unknown } = await statusOfCluster();
  const late = gateways.filter(({ isTranslated }) => !isTranslated);
  return [
    ...late.map(({ gateway }) => `${gateway} is not translated`),
    ...[...differences, ...unknown].map(formatProblem),
  ];
}

/** What `mesh-gateway status --envoy` prints. */
async function statusOfCluster(): Promise<Status> {
  const printed: string[] = [];
  const spy = vi.spyOn(console, 'log').mockImplementation((text: string) => void printed.push(text));
  try {
    await runStatus(['--kubeconfig', testCluster().kubeconfig, '--envoy', '--output', 'json'], {});
  } finally {
    spy.mockRestore();
  }
  return JSON.parse(printed[0] ?? '') as Status;
}

type GatewayState = {
  readonly spec: { readonly listeners: readonly { readonly port: number; readonly protocol: string }[] };
  readonly status?: { readonly addresses?: readonly { readonly value: string }[] };
};

/** The listeners that refuse connections; those without a programmed Gateway are others' concern. */
async function silentListeners(client: KubeClient, namespace: string): Promise<readonly string[]> {
  const type = { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway', namespace };
  const found = await client.list(type);
  const checked = found.flatMap(object => {
    const { spec, status } = object as unknown as GatewayState;
    const host = status?.addresses?.[0]?.value;
    if (host === undefined) return [];
    return spec.listeners.flatMap(({ port, protocol }) => (protocol === 'UDP' ? [] : [accepts(host, port)]));
  });
  return (await Promise.all(checked)).flat();
}

async function accepts(host: string, port: number): Promise<readonly string[]> {
  const socket = connect(port, host);
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_MS) });
    return [];
  } catch {
    return [`${host}:${port} does not answer`];
  } finally {
    socket.destroy();
  }
}

const CONNECT_MS = 2_000;
