import { k8s } from 'cdk8s-plus-28';
import { Yaml } from 'cdk8s';
import type { Construct } from 'constructs';
import type { AccessRule } from '../../src/api/access.ts';
import { extensionManager } from '../../src/api/envoy-gateway.ts';
import { GROUP, kinds } from '../../src/api/generated/kinds.ts';
import { extensionServerAddress, labelsOf } from '../installation.ts';
import type { Install } from '../installation.ts';
import { addClusterAccess } from './rbac.ts';

/** What Envoy Gateway needs for the kinds in its configuration: it replaces the whole status of a policy. */
const ACCESS: readonly AccessRule[] = [
  {
    apiGroups: [GROUP],
    resources: [kinds.MeshBinding.plural, kinds.MeshEndpoints.plural],
    verbs: ['get', 'list', 'watch'],
  },
  { apiGroups: [GROUP], resources: [`${kinds.MeshBinding.plural}/status`], verbs: ['update'] },
];

/** Access that Envoy Gateway needs beside that of its own chart; without it, it does not become ready. */
export function addEnvoyGatewayAccess(chart: Construct, install: Install): void {
  const { namespace, serviceAccount } = install.installation.envoyGateway;
  addClusterAccess(chart, install, {
    name: 'mesh-envoy-gateway',
    labels: { ...labelsOf(install) },
    rules: ACCESS,
    account: { name: serviceAccount, namespace },
  });
}

function extensionOf(install: Install): object {
  const { maxMessageSize } = install.installation.extensionServer;
  return extensionManager({ address: extensionServerAddress(install), maxMessageSize });
}

/** Values for Envoy Gateway's Helm chart. */
export function envoyGatewayValues(install: Install): string {
  return Yaml.stringify({ config: { envoyGateway: { extensionManager: extensionOf(install) } } });
}

/** The same without Helm: to be merged into Envoy Gateway's ConfigMap, so it has another name. */
export function addEnvoyGatewayConfig(chart: Construct, install: Install): void {
  new k8s.KubeConfigMap(chart, 'config', {
    metadata: {
      name: 'mesh-extension-manager',
      namespace: install.installation.envoyGateway.namespace,
      labels: { ...labelsOf(install) },
    },
    data: { 'envoy-gateway.yaml': Yaml.stringify({ extensionManager: extensionOf(install) }) },
  });
}
