import { kubeClient } from '../../lab/kube/client.ts';
import type { KubeClient } from '../../lab/kube/client.ts';
import { commandLine } from '../../lab/cluster/use-cluster.ts';
import { startProgram } from './programs.ts';

/** A real API server of a bench, without controllers and nodes. */
export type BenchApiServer = {
  readonly client: KubeClient;
  readonly kubeconfig: string;
  readonly port: number;
  readonly stop: () => Promise<void>;
};

/** Starts an API server with the kinds of Gateway API and of the product. */
export async function startApiServer(): Promise<BenchApiServer> {
  const server = startProgram(commandLine('lab/commands/cluster.ts', 'alone'), 'in-error');
  const variables = new Map<string, string>();
  await server.next(line => {
    const [, name = '', value = ''] = /^([A-Z_]+)=(.*)$/.exec(line) ?? [];
    variables.set(name, value.replaceAll("'", ''));
    return variables.has('API_SERVER_TOKEN');
  });
  const of = (name: string) => variables.get(name) ?? '';
  return {
    client: kubeClient({
      server: of('API_SERVER'),
      caFile: of('API_SERVER_CA'),
      token: of('API_SERVER_TOKEN'),
    }),
    kubeconfig: of('KUBECONFIG'),
    port: Number(new URL(of('API_SERVER')).port),
    stop: () => server.stop(),
  };
}
