import { k8s } from 'cdk8s-plus-28';
import type { Construct } from 'constructs';
import type { RelayPorts } from '../generated/types.ts';
import { labelsOf, MESH_POD, PORTS, selectorOf } from '../installation.ts';
import type { Install } from '../installation.ts';

/** Who may call what: a pod that a policy selects is called by nobody else, but by its node, which asks how it is. */
export function addNetworkPolicies(chart: Construct, install: Install): void {
  const { networkPolicies, meshPods } = install.installation;
  if (!networkPolicies.enabled) return;
  const fromMonitoring = [namespacePeer(install.installation.monitoring.namespace)];
  const add = (
    name: string,
    labels: Readonly<Record<string, string>>,
    ingress: k8s.NetworkPolicyIngressRule[],
  ) =>
    new k8s.KubeNetworkPolicy(chart, name, {
      metadata: { name, labels: { ...labelsOf(install) } },
      spec: { podSelector: { matchLabels: { ...labels } }, policyTypes: ['Ingress'], ingress },
    });
  add('mesh-operator', selectorOf('operator'), [{ from: fromMonitoring, ports: [port(PORTS.metrics)] }]);
  add('mesh-extension-server', selectorOf('extensionServer'), [
    { from: [envoyGatewayPeer(install), ...envoyPeers(install)], ports: [port(PORTS.grpc)] },
    { from: fromMonitoring, ports: [port(PORTS.metrics)] },
  ]);
  // Whoever reaches the proxy of a mesh pod reaches the mesh, and nobody asks who that is.
  add('mesh-pods', MESH_POD.labels, [
    {
      from: [...envoyPeers(install), { podSelector: { matchLabels: { ...selectorOf('operator') } } }],
      ports: [port(MESH_POD.ports.proxy), datagramPorts(meshPods.relayPorts)],
    },
    { from: fromMonitoring, ports: [port(MESH_POD.ports.metrics)] },
  ]);
}

function port(number: number): k8s.NetworkPolicyPort {
  return { protocol: 'TCP', port: k8s.IntOrString.fromNumber(number) };
}

function datagramPorts({ first, last }: RelayPorts): k8s.NetworkPolicyPort {
  return { protocol: 'UDP', port: k8s.IntOrString.fromNumber(first), endPort: last };
}

/** The label that Kubernetes itself gives each namespace. */
const NAMESPACE_NAME = 'kubernetes.io/metadata.name';

function namespacePeer(name: string): { readonly namespaceSelector: k8s.LabelSelector } {
  return { namespaceSelector: { matchLabels: { [NAMESPACE_NAME]: name } } };
}

function envoyGatewayPeer({ installation }: Install): k8s.NetworkPolicyPeer {
  return {
    ...namespacePeer(installation.envoyGateway.namespace),
    podSelector: { matchLabels: { 'control-plane': 'envoy-gateway' } },
  };
}

/** Namespace and label together: neither a pod with Envoy's labels elsewhere nor another pod beside Envoy is meant. */
function envoyPeers({ installation }: Install): k8s.NetworkPolicyPeer[] {
  const { namespace, proxyNamespaces = [namespace] } = installation.envoyGateway;
  return proxyNamespaces.map(name => ({
    ...namespacePeer(name),
    podSelector: {
      matchLabels: {
        'app.kubernetes.io/managed-by': 'envoy-gateway',
        'app.kubernetes.io/component': 'proxy',
      },
    },
  }));
}
