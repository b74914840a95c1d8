import { k8s } from 'cdk8s-plus-28';
import type { Construct } from 'constructs';
import type { RelayPorts } from '../generated/types.ts';
import { labelsOf, proxyNamespacesOf } from '../installation.ts';
import { ENVOY_POD, MESH_POD, PORTS, RELAY, selectorOf } from '../../src/api/names.ts';
import type { Install } from '../installation.ts';

/** The network policies: a selected pod receives connections only from the named peers, and probes from its node. */
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
  const operator = operatorPeer();
  const { proxy, metrics } = MESH_POD.ports;
  const relayHttp = port(RELAY.ports.http);
  const datagrams = datagramPorts(meshPods.relayPorts);
  // The proxy and the relay of a mesh pod have no authentication: every client that reaches them reaches the mesh.
  add('mesh-pods', MESH_POD.labels, [
    { from: envoyPeers(install), ports: [port(proxy), datagrams] },
    // Health checks take the paths of traffic, and read from /healthz and /readyz whether a mesh pod itself is the cause of a failure.
    { from: [operator], ports: [port(proxy), port(metrics), relayHttp, datagrams] },
    { from: fromMonitoring, ports: [port(metrics), relayHttp] },
  ]);
}

/** The network policy of mesh pods that a user runs in another namespace: they have no front, and no relay. */
export function addUserPoolPolicy(
  chart: Construct,
  install: Install,
  { selector, ...metadata }: k8s.ObjectMeta & { readonly selector: k8s.LabelSelector },
): void {
  const { monitoring, namespace } = install.installation;
  const { proxy, metrics } = MESH_POD.ports;
  const operator = { ...namespacePeer(namespace), ...operatorPeer() };
  new k8s.KubeNetworkPolicy(chart, 'pool', {
    metadata,
    spec: {
      podSelector: selector,
      policyTypes: ['Ingress'],
      ingress: [
        { from: [...envoyPeers(install), operator], ports: [port(proxy)] },
        { from: [operator, namespacePeer(monitoring.namespace)], ports: [port(metrics)] },
      ],
    },
  });
}

function operatorPeer() {
  return { podSelector: { matchLabels: { ...selectorOf('operator') } } };
}

function port(number: number): k8s.NetworkPolicyPort {
  return { protocol: 'TCP', port: k8s.IntOrString.fromNumber(number) };
}

function datagramPorts({ first, last }: RelayPorts): k8s.NetworkPolicyPort {
  return { protocol: 'UDP', port: k8s.IntOrString.fromNumber(first), endPort: last };
}

/** The label that Kubernetes gives each namespace. */
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

/** Envoys, by namespace and labels together: neither pods with these labels elsewhere nor other pods of the namespace. */
function envoyPeers(install: Install): k8s.NetworkPolicyPeer[] {
  return proxyNamespacesOf(install).map(name => ({
    ...namespacePeer(name),
    podSelector: { matchLabels: { ...ENVOY_POD.labels } },
  }));
}
