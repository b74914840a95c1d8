import type { Cluster } from '../../../../lab/cluster/cluster-folder.ts';
import { imageOf } from '../../../../lab/cluster/images/table.ts';
import { applyAll } from '../../../../lab/kube/apply.ts';
import type { KubeClient } from '../../../../lab/kube/client.ts';
import { refOf } from '../../../../lab/kube/object.ts';
import type { KubeObject } from '../../../../lab/kube/object.ts';
import { waitForAbsence, waitForCondition } from '../../../../lab/kube/wait.ts';
import { addJoinKey, listNodes, removeNode } from '../../../../lab/tailnet/tailnet.ts';
import { ENVOY_GATEWAY_CONTROLLER } from '../../../../src/api/envoy-gateway.ts';

/** A GatewayClass of a test. */
export type TestClass = {
  readonly name: string;
  /** Removes its Gateways, itself, and the device; waits until they are deleted. */
  readonly end: () => Promise<void>;
};

/**
 * Creates a GatewayClass whose Gateways Envoy Gateway merges onto one Envoy. That is a device of the tailnet: tailscaled with a
 * network interface runs beside it.
 */
export async function createMergedClass(
  { tailnet }: Pick<Cluster, 'tailnet'>,
  client: KubeClient,
  namespace: string,
): Promise<TestClass> {
  const name = `${namespace}-merged`;
  const { key } = await addJoinKey(tailnet.admin, { tags: ['tag:mesh'] });
  const proxy = gatewayProxy(namespace, tailscaled({ url: tailnet.url, hostname: name, key }));
  const { kind, metadata } = proxy;
  const gatewayClass: KubeObject = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'GatewayClass',
    metadata: { name },
    spec: {
      controllerName: ENVOY_GATEWAY_CONTROLLER,
      parametersRef: { group: 'gateway.envoyproxy.io', kind, namespace, name: metadata.name },
    },
  };
  await applyAll(client, [proxy, gatewayClass]);
  await waitForCondition(client, refOf(gatewayClass), 'Accepted');
  return {
    name,
    end: async () => {
      const type = { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway', namespace };
      const gateways = (await client.list(type)).filter(
        ({ spec }) => (spec as { readonly gatewayClassName: string }).gatewayClassName === name,
      );
      for (const object of [...gateways, gatewayClass]) {
        await client.remove(refOf(object));
        await waitForAbsence(client, refOf(object));
      }
      const devices = (await listNodes(tailnet.admin)).filter(({ hostname }) => hostname === name);
      for (const { id } of devices) await removeNode(tailnet.admin, id);
    },
  };
}

/** Parameters that add a container to those of the installation. */
function gatewayProxy(namespace: string, container: object): KubeObject {
  const volumes = [{ name: 'tmp', emptyDir: {} }];
  const envoyDeployment = { initContainers: [container], pod: { volumes } };
  return {
    apiVersion: 'gateway.envoyproxy.io/v1alpha1',
    kind: 'EnvoyProxy',
    metadata: { namespace, name: 'merged' },
    spec: {
      mergeGateways: true,
      mergeType: 'StrategicMerge',
      provider: { type: 'Kubernetes', kubernetes: { envoyDeployment } },
    },
  };
}

type Device = { readonly url: string; readonly hostname: string; readonly key: string };

/** It needs the right to create an interface, and keeps its state in memory. */
function tailscaled({ url, hostname, key }: Device): object {
  const env = {
    TS_AUTHKEY: key,
    TS_HOSTNAME: hostname,
    TS_USERSPACE: 'false',
    TS_KUBE_SECRET: '',
    TS_ACCEPT_DNS: 'false',
    TS_EXTRA_ARGS: `--login-server=${url} --netfilter-mode=off`,
    TS_NO_LOGS_NO_SUPPORT: 'true',
    TS_DEBUG_USE_DERP_HTTP: 'true',
  };
  return {
    name: 'tailscale',
    image: imageOf('tailscale'),
    // An init container that is not waited for runs beside the others.
    restartPolicy: 'Always',
    env: Object.entries(env).map(([variable, value]) => ({ name: variable, value })),
    securityContext: { privileged: true, runAsUser: 0 },
    volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
  };
}
