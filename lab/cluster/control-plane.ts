import { join } from 'node:path';
import type { ProcessRecord } from '../process/process.ts';
import type { Starter } from '../process/starter.ts';
import { until } from '../process/wait.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Credentials } from './certificates.ts';
import { NETWORK } from './network.ts';

/** The addresses of a control plane. */
export type ControlPlanePlace = {
  readonly etcd: string;
  readonly etcdPeer: string;
  /** The advertised address of the API server. */
  readonly address: string;
  readonly port: number;
  /** The only address to listen on, without endpoints of the Service `kubernetes`; all addresses if not set. */
  readonly bindAddress?: string;
};

/** The cluster's network is its own, so the usual ports are free. */
const IN_SANDBOX: ControlPlanePlace = {
  etcd: 'http://127.0.0.1:2379',
  etcdPeer: 'http://127.0.0.1:2380',
  address: NETWORK.inner,
  port: 6443,
};

/** Starts etcd, the API server and the scheduler, without waiting: they retry. */
export function startControlPlane(starter: Starter, credentials: Credentials): void {
  startEtcd(starter, IN_SANDBOX);
  startApiServer(starter, credentials, IN_SANDBOX);
  starter.start('kube-scheduler', 'kube-scheduler', [
    `--kubeconfig=${credentials.kubeconfigOf('scheduler')}`,
    '--bind-address=127.0.0.1',
    '--leader-elect=false',
  ]);
}

/** The folder of the store of an API server. */
export function etcdFolder({ folder }: Pick<Starter, 'folder'>): string {
  return join(folder, 'etcd');
}

/** Starts the store of an API server. */
export function startEtcd(starter: Starter, { etcd, etcdPeer }: ControlPlanePlace): ProcessRecord {
  return starter.start('etcd', 'etcd', [
    `--data-dir=${etcdFolder(starter)}`,
    `--listen-client-urls=${etcd}`,
    `--advertise-client-urls=${etcd}`,
    `--listen-peer-urls=${etcdPeer}`,
    `--initial-advertise-peer-urls=${etcdPeer}`,
    `--initial-cluster=default=${etcdPeer}`,
    '--unsafe-no-fsync',
  ]);
}

/** Starts the controller manager, which ends unless the API server is ready within 10 s. */
export function startControllerManager(
  starter: Starter,
  credentials: Credentials,
  more: readonly string[] = [],
): ProcessRecord {
  return starter.start('kube-controller-manager', 'kube-controller-manager', [
    `--kubeconfig=${credentials.kubeconfigOf('controller-manager')}`,
    `--service-account-private-key-file=${credentials.serviceAccounts.privateKey}`,
    `--root-ca-file=${credentials.ca}`,
    '--bind-address=127.0.0.1',
    '--leader-elect=false',
    '--use-service-account-credentials=true',
    '--kube-api-qps=100',
    '--kube-api-burst=100',
    ...more,
  ]);
}

/** Starts an API server. */
export function startApiServer(
  starter: Starter,
  credentials: Credentials,
  { etcd, address, port, bindAddress }: ControlPlanePlace,
  more: readonly string[] = [],
): ProcessRecord {
  const { ca, apiServer, kubeletClient, serviceAccounts, tokens } = credentials;
  const alone = [`--bind-address=${bindAddress}`, '--endpoint-reconciler-type=none'];
  return starter.start('kube-apiserver', 'kube-apiserver', [
    `--etcd-servers=${etcd}`,
    `--advertise-address=${address}`,
    `--secure-port=${port}`,
    ...(bindAddress === undefined ? [] : alone),
    `--service-cluster-ip-range=${NETWORK.services}`,
    `--tls-cert-file=${apiServer.certificate}`,
    `--tls-private-key-file=${apiServer.key}`,
    `--client-ca-file=${ca}`,
    `--token-auth-file=${tokens}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    `--service-account-issuer=https://kubernetes.default.svc.${NETWORK.domain}`,
    `--service-account-key-file=${serviceAccounts.publicKey}`,
    `--service-account-signing-key-file=${serviceAccounts.privateKey}`,
    `--kubelet-client-certificate=${kubeletClient.certificate}`,
    `--kubelet-client-key=${kubeletClient.key}`,
    '--kubelet-preferred-address-types=InternalIP',
    '--allow-privileged=true',
    '--profiling=false',
    ...more,
  ]);
}

/** Waits until an API server reports that it is ready. */
export async function waitForApiServer(client: KubeClient): Promise<void> {
  await until('the API server', async () => {
    const { status, body } = await client.request('GET', '/readyz');
    if (status === 200) return true;
    throw new Error(String(body));
  });
}
