import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Starter } from '../process/starter.ts';
import type { Credentials } from './certificates.ts';
import { CGROUP_ROOT } from './cgroup.ts';
import { CONTAINERD_SOCKET } from './containerd.ts';
import { NETWORK, NODE_NAME } from './network.ts';

/** Starts kube-proxy and CoreDNS; the API server need not be ready yet. */
export function startNodeNetwork(starter: Starter, credentials: Credentials): void {
  starter.start('kube-proxy', 'kube-proxy', [
    `--kubeconfig=${credentials.kubeconfigOf('proxy')}`,
    `--hostname-override=${NODE_NAME}`,
    '--proxy-mode=iptables',
    `--cluster-cidr=${NETWORK.pods}`,
    '--bind-address=127.0.0.1',
    // The limits of connection tracking belong to the machine and stay unchanged.
    '--conntrack-max-per-core=0',
    '--conntrack-tcp-timeout-established=0',
    '--conntrack-tcp-timeout-close-wait=0',
    '--iptables-sync-period=30s',
    '--iptables-min-sync-period=100ms',
  ]);
  const corefile = join(starter.folder, 'Corefile');
  writeFileSync(corefile, zones(credentials.kubeconfigOf('coredns')));
  starter.start('coredns', 'coredns', ['-conf', corefile]);
}

/** Starts the kubelet, which ends where containerd does not answer yet; the API server need not be ready. */
export function startKubelet(starter: Starter, credentials: Credentials): void {
  const { folder } = starter;
  const resolvConf = join(folder, 'resolv.conf');
  writeFileSync(resolvConf, `nameserver ${NETWORK.dns}\n`);
  const config = join(folder, 'kubelet.json');
  writeFileSync(config, JSON.stringify(kubeletConfiguration(folder, credentials.ca, resolvConf), null, 2));
  starter.start('kubelet', 'kubelet', [
    `--config=${config}`,
    `--kubeconfig=${credentials.kubeconfigOf('kubelet')}`,
    `--hostname-override=${NODE_NAME}`,
    `--node-ip=${NETWORK.inner}`,
    `--root-dir=${join(folder, 'kubelet')}`,
    `--cert-dir=${join(folder, 'pki')}`,
  ]);
}

function kubeletConfiguration(folder: string, ca: string, resolvConf: string): unknown {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: ca } },
    authorization: { mode: 'Webhook' },
    cgroupDriver: 'cgroupfs',
    cgroupRoot: CGROUP_ROOT,
    failCgroupV1: false,
    failSwapOn: false,
    clusterDNS: [NETWORK.dns],
    clusterDomain: NETWORK.domain,
    containerRuntimeEndpoint: `unix://${CONTAINERD_SOCKET}`,
    resolvConf,
    podLogsDir: join(folder, 'pods'),
    volumePluginDir: join(folder, 'volume-plugins'),
    evictionHard: { 'memory.available': '50Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
    imageGCHighThresholdPercent: 100,
  };
}

/** Names of the cluster are resolved, all others are NXDOMAIN. */
function zones(kubeconfig: string): string {
  return `${NETWORK.domain}:53 in-addr.arpa:53 {
  bind ${NETWORK.dns}
  errors
  kubernetes ${NETWORK.domain} in-addr.arpa {
    kubeconfig ${kubeconfig}
    ttl 5
  }
}
.:53 {
  bind ${NETWORK.dns}
  errors
  template ANY ANY {
    rcode NXDOMAIN
  }
}
`;
}
