import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeClient } from '../../lab/kube/client.ts';
import type { KubeObject } from '../../lab/kube/object.ts';
import { freePorts } from '../../lab/process/ports.ts';
import { cpuMsOf, startProgram } from '../bench-process.ts';
import { builtProduct, productCommand } from '../bundled.ts';
import { startApiServer } from '../kubernetes/api-server.ts';
import type { BenchApiServer } from '../kubernetes/api-server.ts';
import { megabytesOf, startProgram as startCommand } from '../kubernetes/programs.ts';
import { checkedObject, commonObjects, NAMESPACE } from './objects.ts';
import type { CheckedObject } from './objects.ts';
import type { ProxyReply, ProxyRequest } from './proxy-program.ts';

/** An operator on a real API server, which checks services through a proxy in another process. */
export type Installation = {
  readonly server: BenchApiServer;
  readonly product: string;
  readonly operator: Operator;
  readonly requestProxy: (request: ProxyRequest) => Promise<ProxyReply>;
  readonly stop: () => Promise<void>;
};

type Operator = {
  readonly cpuMs: () => number;
  readonly megabytes: () => { readonly now: number; readonly most: number };
  /** The value of each series, by its text. */
  readonly metrics: () => Promise<ReadonlyMap<string, number>>;
  readonly stop: () => Promise<void>;
};

export async function startInstallation(objects: readonly CheckedObject[]): Promise<Installation> {
  const proxy = await startProgram('health/proxy-program', '');
  const { port } = proxy.first as { readonly port: number };
  const server = await startApiServer();
  for (const object of commonObjects(port)) await server.client.apply(object);
  await createAll(server.client, objects.map(checkedObject));
  const product = builtProduct();
  const operator = await startOperator(product, server);
  return {
    server,
    product,
    operator,
    requestProxy: async request => (await proxy.request(request)) as ProxyReply,
    stop: async () => {
      await operator.stop();
      await server.stop();
      await proxy.end();
    },
  };
}

/** Creates objects, one after the other. */
export async function createAll(client: KubeClient, objects: readonly KubeObject[]): Promise<void> {
  for (const object of objects) await client.create(object);
}

/** Deletes all MeshEndpoints. */
export async function deleteAll(client: KubeClient): Promise<void> {
  const path = `/apis/mesh-gateway.dev/v1alpha1/namespaces/${NAMESPACE}/meshendpoints`;
  const { status } = await client.request('DELETE', path);
  if (status !== 200) throw new Error(`the objects were not deleted: ${status}`);
}

async function startOperator(product: string, { kubeconfig }: BenchApiServer): Promise<Operator> {
  const [metrics = 0, health = 0] = await freePorts(2);
  const flags = [
    `--kubeconfig=${kubeconfig}`,
    `--metrics-address=127.0.0.1:${metrics}`,
    `--health-address=127.0.0.1:${health}`,
    '--log-level=warn',
  ];
  const program = startCommand([...productCommand(product), 'operator', ...flags]);
  const isReady = async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).ok;
  while (!(await isReady().catch(() => false))) await sleep(100);
  return {
    cpuMs: () => cpuMsOf(program.child.pid),
    megabytes: () => megabytesOf(program.child),
    metrics: async () => seriesOf(await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text()),
    stop: () => program.stop(),
  };
}

function seriesOf(exposition: string): ReadonlyMap<string, number> {
  const lines = exposition.split('\n').filter(line => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map(line => {
      const end = line.lastIndexOf(' ');
      return [line.slice(0, end), Number(line.slice(end + 1))] as const;
    }),
  );
}
