import { join } from 'node:path';
import type { Starter } from '../starter.ts';
import type { Credentials } from './certificates.ts';
import { NETWORK } from './network.ts';

const ETCD = 'http://127.0.0.1:2379';
const ETCD_PEER = 'http://127.0.0.1:2380';

/** Starts etcd, the API server, the controller manager and the scheduler; nothing is awaited: they find each other. */
export function startControlPlane(starter: Starter, credentials: Credentials): void {
  starter.start('etcd', 'etcd', [
    `--data-dir=${join(starter.folder, 'etcd')}`,
    `--listen-client-urls=${ETCD}`,
    `--advertise-client-urls=${ETCD}`,
    `--listen-peer-urls=${ETCD_PEER}`,
    `--initial-advertise-peer-urls=${ETCD_PEER}`,
    `--initial-cluster=default=${ETCD_PEER}`,
    '--unsafe-no-fsync',
  ]);
  starter.start('kube-apiserver', 'kube-apiserver', apiServerFlags(credentials));
  starter.start('kube-controller-manager', 'kube-controller-manager', [
    `--kubeconfig=${credentials.kubeconfigOf('controller-manager')}`,
    `--service-account-private-key-file=${credentials.serviceAccounts.privateKey}`,
    `--root-ca-file=${credentials.ca}`,
    '--bind-address=127.0.0.1',
    '--leader-elect=false',
    '--use-service-account-credentials=true',
    '--kube-api-qps=100',
    '--kube-api-burst=100',
  ]);
  starter.start('kube-scheduler', 'kube-scheduler', [
    `--kubeconfig=${credentials.kubeconfigOf('scheduler')}`,
    '--bind-address=127.0.0.1',
    '--leader-elect=false',
  ]);
}

function apiServerFlags(credentials: Credentials): readonly string[] {
  const { ca, apiServer, kubeletClient, serviceAccounts, tokens } = credentials;
  return [
    `--etcd-servers=${ETCD}`,
    `--advertise-address=${NETWORK.inner}`,
    '--secure-port=6443',
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
  ];
}
