import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ENVOY_GATEWAY } from '../../../../lab/cluster/envoy-gateway.ts';
import { NETWORK } from '../../../../lab/cluster/network.ts';
import type { KubeClient } from '../../../../lab/kube/client.ts';
import { podsWith } from '../../../../lab/kube/pods.ts';
import { processesWith } from '../../../../lab/process/process-table.ts';
import { COMPONENTS, NAMESPACE, PORTS } from '../../../../src/api/names.ts';

const run = promisify(execFile);

/** A chain of its own, so that it can be removed whole. */
const CHAIN = 'MESH-TEST-POLICY';

/**
 * Enforces the NetworkPolicy `mesh-extension-server` by iptables rules in the networks of the pods of the extension server,
 * because the network plugin of the lab enforces none: port 5005 takes packets of the node, whose kubelet probes it, and of the
 * pods of Envoy Gateway's namespace, and drops those of all others. Returns the function that ends it.
 */
export async function enforceServerPolicy(client: KubeClient): Promise<() => Promise<void>> {
  const peers = (await podsWith(client, ENVOY_GATEWAY.namespace, {})).map(
    ({ status }) => (status as { readonly podIP?: string }).podIP ?? '',
  );
  const servers = await podsWith(client, NAMESPACE, {
    'app.kubernetes.io/name': COMPONENTS.extensionServer,
  });
  const inside = servers.map(({ metadata: { name = '' } }) => networkOf(name));
  for (const iptables of inside) {
    await iptables('-N', CHAIN);
    for (const peer of [NETWORK.bridgeAddress, NETWORK.inner, ...peers].filter(Boolean))
      await iptables('-A', CHAIN, '--source', peer, '-j', 'ACCEPT');
    await iptables('-A', CHAIN, '-j', 'DROP');
    await iptables('-I', 'INPUT', ...TO_SERVER, '-j', CHAIN);
  }
  return async () => {
    for (const iptables of inside) {
      await iptables('-D', 'INPUT', ...TO_SERVER, '-j', CHAIN);
      await iptables('-F', CHAIN);
      await iptables('-X', CHAIN);
    }
  };
}

const TO_SERVER = ['-p', 'tcp', '--dport', String(PORTS.grpc)] as const;

/** Runs iptables in the network of a pod of a process, found by the variable that its manifest sets. */
function networkOf(pod: string): (...args: readonly string[]) => Promise<void> {
  const [pid] = processesWith('POD_NAME', pod);
  if (pid === undefined) throw new Error(`no process of pod ${pod} runs`);
  return async (...args) => {
    await run('nsenter', ['--target', String(pid), '--net', 'iptables', '--wait', ...args]);
  };
}
